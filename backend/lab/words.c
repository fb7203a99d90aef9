/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names, rates and addresses of a lab; pure. */
#include "backend/lab/lab_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/units.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
#define PREFIX "iodeck-"

/* What tc takes and a clock of some microseconds can hold. */
#define RATE_MIN (64e3 / 8)
#define RATE_MAX (100e9 / 8)

/* ---- names -------------------------------------------------------------- */

int lab_name_check(const char *name, struct err *err)
{
	size_t n = strspn(name, LETTERS DIGITS);

	if (n && n < LAB_NAME_MAX && !name[n] && strchr(LETTERS, name[0]))
		return 0;
	return err_set(err, -EINVAL,
		       "\"%.64s\" is no name of a lab: expected 1 to %d small "
		       "letters and digits, a letter first",
		       name, LAB_NAME_MAX - 1);
}

/* "n1".."n64", as they are written; -1: no such. */
static int node_index(const char *text)
{
	char *end;
	long n;

	if (text[0] != 'n' || text[1] < '1' || text[1] > '9')
		return -1;
	n = strtol(text + 1, &end, 10);
	return *end || n > LAB_NODES_MAX ? -1 : (int)n - 1;
}

int lab_node_find(const struct lab *lab, const char *text, struct err *err)
{
	int i = node_index(text);

	if (i >= 0 && i < lab->nodes)
		return i;
	return err_set(
		err, -EINVAL,
		"\"%.64s\" is no node of the lab %s: expected n1 to n%d, "
		"or * for all",
		text, lab->name, lab->nodes);
}

const char *lab_node_name(int node, char *buf)
{
	snprintf(buf, LAB_WORD, "n%d", node + 1);
	return buf;
}

const char *lab_netns(const char *name, int node, char *buf)
{
	if (node == LAB_SWITCH)
		snprintf(buf, LAB_WORD, PREFIX "%s-switch", name);
	else
		snprintf(buf, LAB_WORD, PREFIX "%s-n%d", name, node + 1);
	return buf;
}

bool lab_netns_is(const char *name, const char *netns)
{
	size_t p = strlen(PREFIX), n = strlen(name);

	if (strncmp(netns, PREFIX, p) != 0 ||
	    strncmp(netns + p, name, n) != 0 || netns[p + n] != '-')
		return false;
	netns += p + n + 1;
	return !strcmp(netns, "switch") || node_index(netns) >= 0;
}

const char *lab_iface(const char *name, char *buf)
{
	snprintf(buf, LAB_WORD, PREFIX "%s", name);
	return buf;
}

/*
 * It stands in the files of three programs, and each has characters of its own
 * that mean something: blanks, quotes, and a percent sign to ssh.
 */
int lab_root_check(const char *root, struct err *err)
{
	static const char good[] =
		LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "/._+,@=-";

	if (root[0] != '/' || !root[1] || root[strspn(root, good)])
		return err_set(err, -EINVAL,
			       "lab_dir \"%.200s\": expected an absolute path "
			       "of letters, digits and /._+,@=-",
			       root);
	if (strlen(root) > 200)
		return err_set(err, -ENAMETOOLONG,
			       "lab_dir: expected a path of at most 200 "
			       "characters");
	return 0;
}

const char *lab_path(const struct lab *lab, const char *below, char *buf,
		     size_t len)
{
	int n = snprintf(buf, len, "%s/%s%s%s", lab->root, lab->name,
			 *below ? "/" : "", below);

	id_assert(n > 0 && (size_t)n < len);
	return buf;
}

/* ---- rates -------------------------------------------------------------- */

int lab_rate(const char *text, double *bytes_s, struct err *err)
{
	if (!units_rate(text, bytes_s) && *bytes_s >= RATE_MIN &&
	    *bytes_s <= RATE_MAX)
		return 0;
	return err_set(
		err, -EINVAL,
		"\"%.64s\": expected a rate from 64kbit to 100Gbit, such "
		"as 250Mbit",
		text);
}

const char *lab_rate_text(double bytes_s, char *buf, size_t len)
{
	static const char *const unit[] = { "kbit/s", "Mbit/s", "Gbit/s" };
	double v = bytes_s * 8 / 1e3;
	size_t i = 0;

	for (; v >= 1000 && i + 1 < array_len(unit); i++)
		v /= 1000;
	snprintf(buf, len, "%.4g %s", v, unit[i]);
	return buf;
}

/*
 * A bucket of 5 ms, so that a link held to a rate does not first let a megabyte
 * through, but of no less than some frames, and a queue of 20 ms: what a plain
 * switch has.
 */
struct lab_shape lab_shape(double rate_bytes_s)
{
	double burst = rate_bytes_s * 0.005;

	if (burst < 16 * 1024)
		burst = 16 * 1024;
	return (struct lab_shape) { .rate_bits_s = rate_bytes_s * 8,
				    .burst_bytes = (unsigned)burst,
				    .latency_ms = 20 };
}

/* ---- addresses ---------------------------------------------------------- */

static uint32_t mask(int bits)
{
	return bits ? ~(uint32_t)0 << (32 - bits) : 0;
}

int lab_range_parse(const char *text, struct lab_range *range)
{
	char address[INET_ADDRSTRLEN], *end;
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	struct in_addr in;
	long bits = 32;

	if (n >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, &in) != 1)
		return -EINVAL;
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9')
			return -EINVAL;
		bits = strtol(slash + 1, &end, 10);
		if (*end || bits > 32)
			return -EINVAL;
	}
	range->bits = (int)bits;
	range->base = ntohl(in.s_addr) & mask(range->bits);
	return 0;
}

bool lab_net_overlaps(const struct lab_range *taken, size_t count, uint32_t net)
{
	size_t i;

	for (i = 0; i < count; i++) {
		int bits = taken[i].bits < 24 ? taken[i].bits : 24;

		if ((taken[i].base & mask(bits)) == (net & mask(bits)))
			return true;
	}
	return false;
}

int lab_net_pick(const struct lab_range *taken, size_t count, uint32_t *net)
{
	/* Seldom used parts of the private ranges first. */
	static const uint32_t first[] = { 0x0ad50000, /* 10.213.0.0 */
					  0xac1d0000, /* 172.29.0.0 */
					  0xc0a80000, /* 192.168.0.0 */
					  0x0a000000 };
	size_t i;
	uint32_t k;

	for (i = 0; i < array_len(first); i++)
		for (k = 0; k < 256; k++) {
			*net = first[i] + (k << 8);
			if (!lab_net_overlaps(taken, count, *net))
				return 0;
		}
	return -EADDRINUSE;
}

static bool is_private(uint32_t net)
{
	return (net & 0xff000000) == 0x0a000000 ||
	       (net & 0xfff00000) == 0xac100000 ||
	       (net & 0xffff0000) == 0xc0a80000;
}

int lab_net_parse(const char *text, uint32_t *net, struct err *err)
{
	struct lab_range range;

	if (lab_range_parse(text, &range) || range.bits != 24 ||
	    !is_private(range.base))
		return err_set(err, -EINVAL,
			       "net \"%.64s\": expected a private range of 256 "
			       "addresses, such as 10.9.8.0/24",
			       text);
	*net = range.base;
	return 0;
}

const char *lab_address(const struct lab *lab, int node, char *buf, size_t len)
{
	uint32_t a = lab->net + (node < 0 ? 1u : 11u + (uint32_t)node);

	snprintf(buf, len, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255,
		 a & 255);
	return buf;
}
