/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host_tbf.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- the answer --------------------------------------------------------- */

/* Attributes one after the other: length, type, value, padding. False: no
 * whole one is left. */
static bool attr_next(const char **at, size_t *left, uint16_t *type,
		      const char **value, size_t *len)
{
	struct nlattr a;
	size_t step;

	if (*left < sizeof(a))
		return false;
	memcpy(&a, *at, sizeof(a));
	if (a.nla_len < sizeof(a) || a.nla_len > *left)
		return false;
	*type = a.nla_type & NLA_TYPE_MASK;
	*value = *at + sizeof(a);
	*len = a.nla_len - sizeof(a);
	step = NLA_ALIGN(a.nla_len);
	step = step < *left ? step : *left;
	*at += step;
	*left -= step;
	return true;
}

static uint64_t options_rate(const char *at, size_t left)
{
	uint64_t rate = 0, rate64 = 0;
	const char *value;
	uint16_t type;
	size_t len;

	while (attr_next(&at, &left, &type, &value, &len)) {
		struct tc_tbf_qopt opt;

		if (type == TCA_TBF_PARMS && len >= sizeof(opt)) {
			memcpy(&opt, value, sizeof(opt));
			rate = opt.rate.rate;
		} else if (type == TCA_TBF_RATE64 && len >= sizeof(rate64)) {
			memcpy(&rate64, value, sizeof(rate64));
		}
	}
	return rate64 ? rate64 : rate;
}

static void qdisc_take(const char *at, size_t left, struct host_tbf *tbf,
		       size_t max, size_t *count)
{
	const char *value, *options = NULL;
	size_t len, options_len = 0;
	bool is_tbf = false;
	struct tcmsg tc;
	uint64_t rate;
	uint16_t type;

	if (left < sizeof(tc))
		return;
	memcpy(&tc, at, sizeof(tc));
	at += NLA_ALIGN(sizeof(tc));
	left -= NLA_ALIGN(sizeof(tc)) < left ? NLA_ALIGN(sizeof(tc)) : left;
	while (attr_next(&at, &left, &type, &value, &len)) {
		if (type == TCA_KIND) {
			is_tbf = len >= 4 && !memcmp(value, "tbf", 4);
		} else if (type == TCA_OPTIONS) {
			options = value;
			options_len = len;
		}
	}
	rate = is_tbf && options ? options_rate(options, options_len) : 0;
	if (tc.tcm_parent != TC_H_ROOT || !rate || *count >= max)
		return;
	tbf[(*count)++] = (struct host_tbf) { tc.tcm_ifindex, rate };
}

bool host_tbf_parse(const void *bytes, size_t len, struct host_tbf *tbf,
		    size_t max, size_t *count)
{
	const char *at = bytes;

	while (len >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr h;
		size_t step;

		memcpy(&h, at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > len ||
		    h.nlmsg_type == NLMSG_DONE || h.nlmsg_type == NLMSG_ERROR)
			return false;
		if (h.nlmsg_type == RTM_NEWQDISC)
			qdisc_take(at + sizeof(h), h.nlmsg_len - sizeof(h), tbf,
				   max, count);
		step = NLMSG_ALIGN(h.nlmsg_len);
		step = step < len ? step : len;
		at += step;
		len -= step;
	}
	return true;
}

/* ---- the question ------------------------------------------------------- */

static bool ask(int fd)
{
	const struct timeval limit = { .tv_usec = 500000 };
	struct {
		struct nlmsghdr h;
		struct tcmsg tc;
	} q = {
		.h = { .nlmsg_len = sizeof(q),
		       .nlmsg_type = RTM_GETQDISC,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		       .nlmsg_seq = 1 },
		.tc.tcm_family = AF_UNSPEC,
	};

	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit,
			   sizeof(limit)) &&
	       send(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q);
}

size_t host_tbf_list(struct host_tbf *tbf, size_t max)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	char bytes[32768];
	size_t count = 0;
	ssize_t n = 1;

	if (fd < 0)
		return 0;
	if (ask(fd))
		while (n > 0) {
			n = recv(fd, bytes, sizeof(bytes), 0);
			if (n > 0 &&
			    !host_tbf_parse(bytes, (size_t)n, tbf, max, &count))
				break;
		}
	close(fd);
	return count;
}
