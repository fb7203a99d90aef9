/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the facts of a node come to for a cluster. */
#include "backend/cluster/check_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/units.h"

#define SPOOL_BYTES (256.0 * MIB) /* of an agent, while nobody hears it */
#define ROOM_BYTES (GIB)
#define FILES_MIN 4096
#define OFF_US 1000000   /* of a clock that is set by somebody */
#define ERROR_US 5000000 /* so far off may its guess be */

bool check_is_numeric(const char *address)
{
	unsigned char to[sizeof(struct in6_addr)];

	return address && (inet_pton(AF_INET, address, to) == 1 ||
			   inet_pton(AF_INET6, address, to) == 1);
}

static const char *text(const json_t *j, const char *key)
{
	const char *is = json_string_value(json_object_get(j, key));

	return is ? is : "";
}

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static bool is_ok(const json_t *j)
{
	return json_is_true(json_object_get(j, "ok"));
}

static void judge_reach(struct check *c, const struct fleet_node *n)
{
	char place[360];

	node_place(n->at, place, sizeof(place));
	if (n->state == FLEET_UP)
		check_say(c, n->name, "reach", CHECK_OK,
			  "%.200s: ok, by %.80s, attached in %.0f ms", place,
			  link_conn_via(n->link), (double)n->up_after_us / 1e3);
	else
		check_say(c, n->name, "reach", CHECK_BAD, "%s",
			  *n->text ? n->text : "it does not answer");
}

static void judge_version(struct check *c, const struct fleet_node *n)
{
	if (!strcmp(n->version, IODECK_VERSION))
		check_say(c, n->name, "version", CHECK_OK,
			  "agent %s of iodeck %s", n->agent, n->version);
	else
		check_say(c, n->name, "version", CHECK_WARN,
			  "agent %s of iodeck %s, and this console of %s: "
			  "`iodeck agent stop`, and install the same on both",
			  n->agent, n->version, IODECK_VERSION);
}

static const char *off_text(int64_t us, char *buf, size_t len)
{
	double s = (double)llabs(us) / 1e6;

	if (s < 1)
		snprintf(buf, len, "%.2g ms", s * 1e3);
	else if (s < 120)
		snprintf(buf, len, "%.3g s", s);
	else
		snprintf(buf, len, "%.0f min", s / 60);
	return buf;
}

static void judge_clock(struct check *c, const struct fleet_node *n)
{
	int64_t offset, error;
	char by[32], off[32];

	if (!fleet_offset(n, &offset, &error)) {
		check_say(c, n->name, "clock", CHECK_WARN,
			  "not known: this agent does not tell the time");
		return;
	}
	off_text(error, off, sizeof(off));
	off_text(offset, by, sizeof(by));
	if (llabs(offset) > OFF_US)
		check_say(c, n->name, "clock", CHECK_WARN,
			  "%s %s this machine's: runs allow for it, but its "
			  "own logs will not agree; set it, as chrony does",
			  by, offset > 0 ? "before" : "behind");
	else
		check_say(c, n->name, "clock",
			  error > ERROR_US ? CHECK_WARN : CHECK_OK,
			  "%s %s this machine's, known to %s", by,
			  offset > 0 ? "before" : "behind", off);
}

static void judge_space(struct check *c, const struct fleet_node *n,
			const json_t *dir)
{
	double room = number(dir, "free_bytes");
	char left[24];

	units_bytes_text(room, left, sizeof(left));
	if (!is_ok(dir))
		check_say(c, n->name, "space", CHECK_BAD,
			  "%.200s: %.120s: the agent keeps there what nobody "
			  "has heard yet",
			  text(dir, "path"), text(dir, "error"));
	else
		check_say(c, n->name, "space",
			  room < SPOOL_BYTES  ? CHECK_BAD
			  : room < ROOM_BYTES ? CHECK_WARN
					      : CHECK_OK,
			  "%s free for the agent in %.200s%s", left,
			  text(dir, "path"),
			  room < ROOM_BYTES ? ": make room there" : "");
}

static void judge_rights(struct check *c, const struct fleet_node *n,
			 const json_t *reply)
{
	double files = number(json_object_get(reply, "limits"), "nofile_max");
	bool root = number(reply, "uid") == 0;

	if (n->at->become && !root)
		check_say(c, n->name, "rights", CHECK_BAD,
			  "\"%s\" does not make the agent root there",
			  n->at->become);
	else if (files && files < FILES_MIN)
		check_say(c, n->name, "rights", CHECK_WARN,
			  "%.0f files may be open: raise the hard limit to "
			  "%d",
			  files, FILES_MIN);
	else
		check_say(c, n->name, "rights", CHECK_OK, "%s",
			  root ? "root" : "a user: block devices need rights");
}

static void judge_tools(struct check *c, const struct fleet_node *n,
			const json_t *reply)
{
	const json_t *ring = json_object_get(reply, "io_uring");
	const json_t *nbdkit =
		json_object_get(json_object_get(reply, "tools"), "nbdkit");

	check_say(c, n->name, "io", is_ok(ring) ? CHECK_OK : CHECK_WARN,
		  "%s%s%.200s", is_ok(ring) ? "io_uring" : "threads, as ",
		  is_ok(ring) ? "" : "io_uring is not to be had: ",
		  is_ok(ring) ? "" : text(ring, "error"));
	if (!is_ok(nbdkit) && n->fleet->nodes > 1)
		check_say(c, n->name, "nbdkit", CHECK_BAD,
			  "other nodes cannot use its drives: %.300s",
			  text(nbdkit, "error"));
}

static void judge_drive(struct check *c, const struct fleet_node *n,
			const json_t *d)
{
	const char *cluster =
		json_string_value(json_object_get(check_cluster(c), "name"));
	const char *verdict = text(d, "verdict"), *whose = text(d, "cluster");
	const char *path = text(d, "path");
	bool device = !strcmp(text(d, "kind"), "device");
	bool ours = !strcmp(verdict, "ours") &&
		    (!*whose || (cluster && !strcmp(whose, cluster)));
	char size[24];

	units_bytes_text(number(d, "size_bytes"), size, sizeof(size));
	if (!is_ok(d))
		check_say(c, n->name, "drive", CHECK_BAD, "%.200s: %.120s",
			  path, text(d, "error"));
	else if (!json_is_true(json_object_get(d, "writable")))
		check_say(c, n->name, "drive", CHECK_BAD,
			  "%.200s: the agent may not write there: say become "
			  "= \"sudo -n\", or give it the right",
			  path);
	else if (ours)
		check_say(c, n->name, "drive", CHECK_OK, "%.200s, %s: ours",
			  path, size);
	else if (!strcmp(verdict, "empty"))
		check_say(c, n->name, "drive", device ? CHECK_WARN : CHECK_OK,
			  "%.200s, %s: empty%s", path, size,
			  device ? ": `iodeck drive claim` gives it to iodeck"
				 : "");
	else
		check_say(c, n->name, "drive", CHECK_BAD,
			  "%.200s: %s%s%s%.120s", path,
			  !strcmp(verdict, "ours") ? "of cluster " : "",
			  !strcmp(verdict, "ours") ? whose : verdict,
			  *text(d, "reason") ? ", " : "", text(d, "reason"));
}

void check_judge(struct check *c, const struct fleet_node *n,
		 const json_t *reply)
{
	const json_t *drives = json_object_get(reply, "drives");
	const json_t *d;
	size_t k;

	judge_reach(c, n);
	if (n->state != FLEET_UP)
		return;
	judge_version(c, n);
	judge_clock(c, n);
	if (!is_ok(reply)) {
		check_say(c, n->name, "answer", CHECK_BAD,
			  "it cannot be looked at: %.300s",
			  reply ? text(reply, "error")
				: "the agent was lost meanwhile");
		return;
	}
	judge_space(c, n, json_object_get(reply, "state_dir"));
	judge_rights(c, n, reply);
	judge_tools(c, n, reply);
	json_array_foreach((json_t *)drives, k, d) {
		judge_drive(c, n, d);
	}
}
