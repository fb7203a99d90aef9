/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/cluster/node.h"

#include <string.h>

#include "backend/transport/sshconf.h"

static const char *text(const json_t *json, const char *key)
{
	return json_string_value(json_object_get(json, key));
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
		.become = text(json, "become"),
	};
	if (way && !strcmp(way, "ssh"))
		node->host.way = TRANSPORT_SSH;
	else if (way && !strcmp(way, "libssh2"))
		node->host.way = TRANSPORT_SSH2;
	if (!node->host.host)
		return err_set(err, -EINVAL, "node: expected host here");
	return sshconf_check(&node->host, err);
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
	case EPROTONOSUPPORT:
		return false;
	default:
		return true;
	}
}
