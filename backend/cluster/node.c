/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/node.h"

#include <stdio.h>
#include <string.h>

#include "backend/transport/sshconf.h"

static const char *text(const json_t *json, const char *key)
{
	return json_string_value(json_object_get(json, key));
}

/* "20000-20999" */
static int ports_read(const char *given, unsigned ports[2])
{
	int end = 0;

	ports[0] = 20000;
	ports[1] = 20999;
	if (!given)
		return 0;
	if (sscanf(given, "%5u-%5u%n", &ports[0], &ports[1], &end) != 2 ||
	    given[end] || ports[0] < 1024 || ports[1] > 65535 ||
	    ports[0] > ports[1])
		return -EINVAL;
	return 0;
}

/* Others than names and addresses end up in commands. */
static bool address_is_good(const char *address)
{
	size_t n = strspn(address, "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_%");

	return n && n < 256 && !address[n] && address[0] != '-';
}

int node_read(const json_t *json, struct node *node, struct err *err)
{
	const char *way = text(json, "transport");

	*node = (struct node) {
		.host = {
			.host = text(json, "host"),
			.user = text(json, "user"),
			.identity = text(json, "identity"),
			.config = text(json, "ssh_config"),
			.port = (unsigned)json_integer_value(
				json_object_get(json, "port")),
		},
		.program = text(json, "program"),
		.state_dir = text(json, "state_dir"),
		.name = text(json, "name"),
		.become = text(json, "become"),
		.address = text(json, "address"),
	};
	if (way && !strcmp(way, "ssh"))
		node->host.way = TRANSPORT_SSH;
	else if (way && !strcmp(way, "libssh2"))
		node->host.way = TRANSPORT_SSH2;
	if (ports_read(text(json, "nbd_ports"), node->ports))
		return err_set(err, -EINVAL,
			       "nbd_ports: expected \"FIRST-LAST\" within "
			       "1024 to 65535");
	if (node->address && !address_is_good(node->address))
		return err_set(err, -EINVAL,
			       "address \"%s\": expected a name or an address",
			       node->address);
	return node->host.host ? sshconf_check(&node->host, err) : 0;
}

void node_place(const struct node *node, char *buf, size_t len)
{
	if (node->host.host)
		sshconf_place(&node->host, buf, len);
	else
		snprintf(buf, len, "this machine");
}

bool node_may_heal(int code)
{
	switch (-code) {
	case 0: /* not the way's fault: the agent was told to end, or died */
	case EACCES:
	case EKEYREJECTED:
	case ENOKEY:
	case EINVAL:
	case ENOENT:
	case ENOEXEC:
	case ENOSPC:
	case EPROTONOSUPPORT:
		return false;
	default:
		return true;
	}
}
