/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Namespaces, the switch and the links of a lab, by ip(8) and tc(8). */
#include "backend/lab/lab_impl.h"

#include <dirent.h>
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/paths.h"

/* ---- addresses ---------------------------------------------------------- */

struct ranges {
	struct lab_range *range;
	size_t count;
};

static int ranges_add(struct ranges *r, const char *text)
{
	struct lab_range one, *more;

	if (!text || lab_range_parse(text, &one) || !one.bits)
		return 0; /* "default", or no address */
	more = realloc(r->range, (r->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->range = more;
	more[r->count++] = one;
	return 0;
}

/* What the host has a route to is somebody's. */
static int ranges_of_host(struct ranges *r, struct err *err)
{
	json_t *routes = NULL, *route;
	char *out = NULL;
	size_t i;
	int rc;

	rc = lab_ask_tool(&out, err, "ip", "-j", "-4", "route", "show", "table",
			  "all");
	if (rc)
		return rc;
	routes = json_loads(*out ? out : "[]", 0, NULL);
	if (!json_is_array(routes))
		rc = err_set(err, -EIO,
			     "\"ip -j -4 route show table all\" printed no "
			     "JSON: a lab needs iproute2 of 2018 or later");
	json_array_foreach(routes, i, route) {
		if (!rc && ranges_add(r, json_string_value(json_object_get(
						 route, "dst"))))
			rc = err_set(err, -ENOMEM, "out of memory");
	}
	json_decref(routes);
	free(out);
	return rc;
}

int lab_net_choose(struct lab *lab, const char *wish, struct err *err)
{
	struct ranges r = { 0 };
	int rc = ranges_of_host(&r, err);

	if (!rc && wish) {
		rc = lab_net_parse(wish, &lab->net, err);
		if (!rc && lab_net_overlaps(r.range, r.count, lab->net))
			rc = err_set(err, -EADDRINUSE,
				     "net %s: this host has a route there "
				     "already; choose another, or leave it out "
				     "and a free one is found",
				     wish);
	} else if (!rc && lab_net_pick(r.range, r.count, &lab->net)) {
		rc = err_set(err, -EADDRINUSE,
			     "this host has routes to all of the private "
			     "addresses that were tried; say one that is free: "
			     "net=10.9.8.0/24");
	}
	free(r.range);
	return rc;
}

/* ---- making ------------------------------------------------------------- */

bool lab_net_there(const char *name, int node)
{
	char ns[LAB_WORD], path[64];

	snprintf(path, sizeof(path), LAB_NETNS_DIR "/%s",
		 lab_netns(name, node, ns));
	return path_exists(path);
}

static int ns_add(const struct lab *lab, int node, struct err *err)
{
	char ns[LAB_WORD];

	return lab_run(err, "ip", "netns", "add",
		       lab_netns(lab->name, node, ns));
}

static int switch_make(const char *sw, struct err *err)
{
	int r = lab_run(err, "ip", "-n", sw, "link", "add", "br0", "type",
			"bridge");

	return r ? r : lab_run(err, "ip", "-n", sw, "link", "set", "br0", "up");
}

/* The host's end, and the address that says which way the nodes are. */
static int host_plug(const struct lab *lab, const char *sw, struct err *err)
{
	char dev[LAB_WORD], address[LAB_WORD], net[LAB_WORD + 4];
	int r;

	lab_iface(lab->name, dev);
	snprintf(net, sizeof(net), "%s/24",
		 lab_address(lab, -1, address, sizeof(address)));
	r = lab_run(err, "ip", "link", "add", dev, "type", "veth", "peer",
		    "name", "host", "netns", sw);
	if (!r)
		r = lab_run(err, "ip", "-n", sw, "link", "set", "host",
			    "master", "br0", "up");
	if (!r)
		r = lab_run(err, "ip", "addr", "add", net, "dev", dev);
	return r ? r : lab_run(err, "ip", "link", "set", dev, "up");
}

int lab_net_up(struct lab *lab, struct err *err)
{
	char sw[LAB_WORD];
	int r = ns_add(lab, LAB_SWITCH, err);

	lab_netns(lab->name, LAB_SWITCH, sw);
	if (!r)
		r = switch_make(sw, err);
	return r ? r : host_plug(lab, sw, err);
}

int lab_net_join(const struct lab *lab, int node, struct err *err)
{
	char sw[LAB_WORD], ns[LAB_WORD], port[LAB_WORD], address[LAB_WORD];
	char net[LAB_WORD + 4];
	int r = ns_add(lab, node, err);

	lab_netns(lab->name, LAB_SWITCH, sw);
	lab_netns(lab->name, node, ns);
	lab_node_name(node, port);
	snprintf(net, sizeof(net), "%s/24",
		 lab_address(lab, node, address, sizeof(address)));
	if (!r)
		r = lab_run(err, "ip", "-n", sw, "link", "add", port, "type",
			    "veth", "peer", "name", "eth0", "netns", ns);
	if (!r)
		r = lab_run(err, "ip", "-n", sw, "link", "set", port, "master",
			    "br0", "up");
	if (!r)
		r = lab_run(err, "ip", "-n", ns, "addr", "add", net, "dev",
			    "eth0");
	if (!r)
		r = lab_run(err, "ip", "-n", ns, "link", "set", "eth0", "up");
	if (!r)
		r = lab_run(err, "ip", "-n", ns, "link", "set", "lo", "up");
	return r ? r : lab_net_shape(lab, node, lab->link_bytes_s, err);
}

/* ---- links -------------------------------------------------------------- */

static int shape_one(const char *ns, const char *dev, double rate_bytes_s,
		     struct err *err)
{
	struct lab_shape s = lab_shape(rate_bytes_s);
	char rate[LAB_WORD], burst[LAB_WORD], latency[LAB_WORD];

	snprintf(rate, sizeof(rate), "%.0fbit", s.rate_bits_s);
	snprintf(burst, sizeof(burst), "%ub", s.burst_bytes);
	snprintf(latency, sizeof(latency), "%ums", s.latency_ms);
	return lab_run(err, "tc", "-n", ns, "qdisc", "replace", "dev", dev,
		       "root", "tbf", "rate", rate, "burst", burst, "latency",
		       latency);
}

/* Each way by itself, as a link is full duplex. */
int lab_net_shape(const struct lab *lab, int node, double rate_bytes_s,
		  struct err *err)
{
	char sw[LAB_WORD], ns[LAB_WORD], port[LAB_WORD];
	int r = shape_one(lab_netns(lab->name, LAB_SWITCH, sw),
			  lab_node_name(node, port), rate_bytes_s, err);

	return r ? r
		 : shape_one(lab_netns(lab->name, node, ns), "eth0",
			     rate_bytes_s, err);
}

/* At the switch's port: the node sees its carrier go, as with a cable. */
int lab_net_link(const struct lab *lab, int node, bool up, struct err *err)
{
	char sw[LAB_WORD], port[LAB_WORD];

	return lab_run(err, "ip", "-n", lab_netns(lab->name, LAB_SWITCH, sw),
		       "link", "set", lab_node_name(node, port),
		       up ? "up" : "down");
}

int lab_net_carriers(const struct lab *lab, uint64_t *up, struct err *err)
{
	char sw[LAB_WORD], port[LAB_WORD], *out = NULL;
	json_t *links, *link;
	size_t i;
	int r, k;

	*up = 0;
	r = lab_ask_tool(&out, err, "ip", "-j", "-n",
			 lab_netns(lab->name, LAB_SWITCH, sw), "link", "show");
	if (r)
		return r;
	links = json_loads(out, 0, NULL);
	json_array_foreach(links, i, link) {
		const char *name =
			json_string_value(json_object_get(link, "ifname"));
		const char *state =
			json_string_value(json_object_get(link, "operstate"));

		for (k = 0; name && state && k < lab->nodes; k++)
			if (!strcmp(lab_node_name(k, port), name) &&
			    !strcmp(state, "UP"))
				*up |= (uint64_t)1 << k;
	}
	json_decref(links);
	free(out);
	return 0;
}

/* ---- removing ----------------------------------------------------------- */

int lab_net_names(const char *name, char ***names, struct err *err)
{
	DIR *dir = opendir(LAB_NETNS_DIR);
	struct dirent *entry;
	char **list = calloc(LAB_NODES_MAX + 2, sizeof(*list));
	size_t n = 0;

	while (dir && list && n <= LAB_NODES_MAX && (entry = readdir(dir)))
		if (lab_netns_is(name, entry->d_name)) {
			list[n] = strdup(entry->d_name);
			if (!list[n++])
				break;
		}
	if (dir)
		closedir(dir);
	*names = list;
	return list ? 0 : err_set(err, -ENOMEM, "out of memory");
}

int lab_net_remove(const char *netns, struct err *err)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), LAB_NETNS_DIR "/%s", netns);
	if (lstat(path, &st))
		return 0;
	return lab_run(err, "ip", "netns", "del", netns);
}

/* Only what a lab makes: something else of that name is left. */
int lab_net_unplug(const char *name, bool *found, struct err *err)
{
	char dev[LAB_WORD], *out = NULL;
	int r;

	lab_iface(name, dev);
	if (!if_nametoindex(dev))
		return 0;
	r = lab_ask_tool(&out, err, "ip", "-j", "link", "show", "dev", dev,
			 "type", "veth");
	if (!r && !strstr(out, dev))
		r = err_set(err, -EEXIST,
			    "the interface %s is none that a lab made: remove "
			    "it by hand",
			    dev);
	free(out);
	if (r)
		return r;
	*found = true;
	return lab_run(err, "ip", "link", "del", dev);
}
