/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/agent/host_nic.h"

#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "backend/agent/host_read.h"
#include "backend/agent/host_tbf.h"

#define NET "/sys/class/net"

/* ---- counters ----------------------------------------------------------- */

/* "  eth0: 1 2 3 ..." with 8 figures of what came, and 8 of what went. */
static bool line_parse(const char *line, struct host_nic *nic)
{
	uint64_t v[12];
	int n;

	*nic = (struct host_nic) { 0 };
	n = sscanf(line,
		   " %15[^: \t\n]: %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   nic->name, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		   &v[7], &v[8], &v[9], &v[10], &v[11]);
	if (n != 13 || !strcmp(nic->name, "lo"))
		return false;
	nic->rx_bytes = v[0];
	nic->tx_bytes = v[8];
	nic->errors = v[2] + v[10];
	nic->drops = v[3] + v[11];
	return true;
}

void host_nics_parse(const char *text, struct host_nics *nics)
{
	const char *end;

	nics->count = 0;
	/* a last line without an end was cut */
	for (; (end = strchr(text, '\n')); text = end + 1) {
		char line[512];

		if (nics->count == HOST_NICS_MAX)
			return;
		if ((size_t)(end - text) >= sizeof(line))
			continue;
		memcpy(line, text, (size_t)(end - text));
		line[end - text] = '\0';
		nics->count += line_parse(line, &nics->nic[nics->count]);
	}
}

static void nics_read(const char *root, struct host_nics *nics)
{
	char text[32768];

	host_read(root, "/proc/net/dev", text, sizeof(text));
	host_nics_parse(text, nics);
}

static const struct host_nic *nic_find(const struct host_nics *nics,
				       const char *name)
{
	for (size_t i = 0; i < nics->count; i++)
		if (!strcmp(nics->nic[i].name, name))
			return &nics->nic[i];
	return NULL;
}

/* ---- line rates --------------------------------------------------------- */

/* Hardware, or what is made of it alone. */
static bool is_real(const char *root, const char *name)
{
	return host_there(root, NET "/%s/device", name) ||
	       host_there(root, NET "/%s/bonding", name);
}

static void rate_add(struct host_rates *rates, const char *name,
		     uint64_t bytes_s, bool tbf)
{
	size_t k = 0;

	while (k < rates->count && strcmp(rates->of[k].name, name) != 0)
		k++;
	if (k == HOST_NICS_MAX || !bytes_s)
		return;
	/* who holds it tighter decides */
	if (k < rates->count && rates->of[k].bytes_s <= bytes_s)
		return;
	rates->count += k == rates->count;
	snprintf(rates->of[k].name, HOST_NIC_NAME, "%.15s", name);
	rates->of[k].bytes_s = bytes_s;
	rates->of[k].tbf = tbf;
}

void host_rates_read(const char *root, struct host_rates *rates)
{
	struct host_tbf tbf[HOST_NICS_MAX];
	struct host_nics nics;
	size_t count;

	rates->count = 0;
	nics_read(root, &nics);
	for (size_t i = 0; i < nics.count; i++) {
		const char *name = nics.nic[i].name;
		const int64_t mbit =
			is_real(root, name)
				? host_number(root, NET "/%s/speed", name)
				: -1;

		/* -1 is none, and so says an old kernel in 32 bits */
		if (mbit > 0 && mbit < INT32_MAX)
			rate_add(rates, name, (uint64_t)mbit * 125000, false);
	}
	count = *root ? 0 : host_tbf_list(tbf, HOST_NICS_MAX);
	for (size_t i = 0; i < count; i++) {
		char name[IF_NAMESIZE];

		if (if_indextoname((unsigned)tbf[i].ifindex, name))
			rate_add(rates, name, tbf[i].rate_bytes_s, true);
	}
}

static size_t rate_find(const struct host_rates *rates, const char *name)
{
	size_t k = 0;

	while (k < rates->count && strcmp(rates->of[k].name, name) != 0)
		k++;
	return k;
}

/* ---- facts -------------------------------------------------------------- */

json_t *host_nics_facts(const char *root, const struct host_rates *rates)
{
	json_t *list = json_array();
	struct host_nics nics;

	nics_read(root, &nics);
	for (size_t i = 0; list && i < nics.count; i++) {
		const char *name = nics.nic[i].name;
		json_t *nic = json_object();
		size_t k = rate_find(rates, name);
		char text[64];

		host_add_text(nic, "name", name);
		if (host_link(text, sizeof(text), root, NET "/%s/device/driver",
			      name))
			host_add_text(nic, "driver", text);
		json_object_set_new(nic, "virtual",
				    json_boolean(!is_real(root, name)));
		host_add_int(nic, "mtu",
			     host_number(root, NET "/%s/mtu", name));
		if (host_line(text, sizeof(text), root, NET "/%s/operstate",
			      name))
			host_add_text(nic, "state", text);
		if (host_line(text, sizeof(text), root, NET "/%s/address",
			      name))
			host_add_text(nic, "address", text);
		if (k < rates->count) {
			host_add_int(nic, "line_bytes_s",
				     (int64_t)rates->of[k].bytes_s);
			host_add_text(nic, "line_by",
				      rates->of[k].tbf ? "tbf" : "driver");
		}
		json_array_append_new(list, nic);
	}
	return list;
}

/* ---- figures ------------------------------------------------------------ */

/* NULL: a counter went back, so it was made anew. */
static json_t *nic_usage(const struct host_rates *rates, double len_s,
			 const struct host_nic *was, const struct host_nic *is)
{
	const double rx = (double)(is->rx_bytes - was->rx_bytes) / len_s;
	const double tx = (double)(is->tx_bytes - was->tx_bytes) / len_s;
	const size_t k = rate_find(rates, is->name);
	json_t *j;

	if (is->rx_bytes < was->rx_bytes || is->tx_bytes < was->tx_bytes ||
	    is->drops < was->drops || is->errors < was->errors)
		return NULL;
	j = json_object();
	host_add_text(j, "name", is->name);
	host_add_rate(j, "rx_bytes_s", rx);
	host_add_rate(j, "tx_bytes_s", tx);
	host_add_int(j, "drops", (int64_t)(is->drops - was->drops));
	host_add_int(j, "errors", (int64_t)(is->errors - was->errors));
	if (k < rates->count)
		host_add_rate(j, "share",
			      (rx > tx ? rx : tx) /
				      (double)rates->of[k].bytes_s);
	return j;
}

void host_nics_usage(const char *root, const struct host_rates *rates,
		     double len_s, struct host_nics *last, json_t *usage)
{
	struct host_nics nics;
	json_t *list = json_array();

	nics_read(root, &nics);
	for (size_t i = 0; list && len_s > 0 && i < nics.count; i++) {
		const struct host_nic *was = nic_find(last, nics.nic[i].name);
		json_t *j = NULL;

		/* of one that was never used there is nothing to say */
		if (was && (nics.nic[i].rx_bytes || nics.nic[i].tx_bytes))
			j = nic_usage(rates, len_s, was, &nics.nic[i]);

		if (j)
			json_array_append_new(list, j);
	}
	if (json_array_size(list))
		json_object_set(usage, "nics", list);
	json_decref(list);
	*last = nics;
}
