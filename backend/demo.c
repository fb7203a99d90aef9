/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The demo's lab: six fault domains of two file drives each, every domain
 * behind its own link, three vDisks of three policies in the log layout and one
 * in place. It lives in a directory of its own in the cache, agent and all, and
 * leaves only its session.
 *
 * Drives and links are held to stated speeds, low enough that two cores and a
 * plain disk are bored, so that every machine shows the same story:
 *
 *   drive  3,000 IOPS, 150 MB/s, 0.05 ms
 *   link   31.25 MB/s, 0.05 ms: 100 GbE scaled 1:400
 *
 * (conf/suites/demo.conf sets links of a quarter of that for 25 GbE.)
 *
 * A directory whose lock nobody holds belongs to a demo that was killed.
 */
#include "backend/deck_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "backend/paths.h"

#define DOMAINS 6
#define DRIVES 2
#define DRIVE_BYTES (GIB)
#define VDISK_BYTES (128 * MIB)
#define AGENT "demo"
#define END_MS 10000

/* ---- the cluster document
 * ---------------------------------------------------------- */

static json_t *drive_doc(const char *dir, int domain, int drive)
{
	char name[16], path[PATH_MAX + 32];

	snprintf(name, sizeof(name), "d%d", drive);
	snprintf(path, sizeof(path), "%s/n%d-%s", dir, domain, name);
	if (path_make(path, NULL))
		return NULL;
	return json_pack("{s:s,s:s,s:I,s:{s:f,s:f,s:f}}", "name", name, "path",
			 path, "size_bytes", (json_int_t)DRIVE_BYTES, "shape",
			 "rate_bytes_s", 150e6, "rate_iops", 3000.0,
			 "latency_us", 50.0);
}

static json_t *domain_doc(const char *dir, int domain)
{
	json_t *drives = json_array();
	char name[16];
	int i;

	for (i = 0; i < DRIVES; i++)
		json_array_append_new(drives, drive_doc(dir, domain, i));
	snprintf(name, sizeof(name), "n%d", domain);
	return json_pack("{s:s,s:{s:f,s:f},s:o}", "name", name, "link",
			 "rate_bytes_s", 31.25e6, "latency_us", 50.0, "drives",
			 drives);
}

static json_t *lab_doc(const char *dir)
{
	static const struct {
		const char *policy, *vdisk, *layout;
		int raid, ftt;
	} rows[] = {
		{ "mirror", "db1", "log", 1, 1 },
		{ "parity", "db2", "log", 5, 1 },
		{ "double", "db3", "log", 6, 2 },
		{ "in-place", "db4", "inplace", 6, 2 },
	};
	json_t *domains = json_array(), *policies = json_array(),
	       *vdisks = json_array();
	size_t i;

	for (i = 1; i <= DOMAINS; i++)
		json_array_append_new(domains, domain_doc(dir, (int)i));
	for (i = 0; i < array_len(rows); i++) {
		json_array_append_new(
			policies,
			json_pack("{s:s,s:i,s:i,s:s}", "name", rows[i].policy,
				  "raid", rows[i].raid, "ftt", rows[i].ftt,
				  "layout", rows[i].layout));
		json_array_append_new(vdisks,
				      json_pack("{s:s,s:I,s:s}", "name",
						rows[i].vdisk, "size_bytes",
						(json_int_t)VDISK_BYTES,
						"policy", rows[i].policy));
	}
	return json_pack("{s:s,s:s,s:b,s:b,s:o,s:o,s:o}", "name", AGENT,
			 "title", "Six nodes, twelve drives", "virtual", 1,
			 "create", 1, "domains", domains, "policies", policies,
			 "vdisks", vdisks);
}

/* ---- its directory
 * -------------------------------------------------------------------- */

static int lock_take(const char *dir)
{
	char path[PATH_MAX + 8];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return -EBUSY;
	}
	return fd < 0 ? -errno : fd;
}

/* Ends the agent of a lab, if it has one, and waits for it. */
struct ending {
	bool over;
	struct link_conn *link;
};

static void ending_reply(const json_t *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void ending_state(enum link_state state, const json_t *hello,
			 const char *reason, void *arg)
{
	struct ending *e = arg;

	(void)hello;
	(void)reason;
	if (state == LINK_UP)
		link_conn_ask(e->link, "quit", NULL, ending_reply, NULL);
	if (state == LINK_DOWN)
		e->over = true;
}

static void ending_event(const json_t *event, void *arg)
{
	(void)event;
	(void)arg;
}

static void agent_end(const char *state_dir, const char *program)
{
	struct ending e = { 0 };
	struct link_conn_opts opts = {
		.agent = AGENT,
		.program = program,
		.state_dir = state_dir,
		.take = true,
		.event = ending_event,
		.state = ending_state,
		.arg = &e,
	};
	int64_t until = deck_clock() + END_MS * 1000;

	if (!path_exists(state_dir) || link_conn_open(&opts, &e.link, NULL))
		return;
	while (!e.over && deck_clock() < until) {
		link_conn_step(e.link);
		if (!e.over)
			usleep(2000);
	}
	link_conn_close(e.link);
}

/* And the directories above, when they are empty. */
static void lab_remove(const char *dir, const char *program)
{
	char path[PATH_MAX + 8], *slash;
	int i;

	snprintf(path, sizeof(path), "%s/agent", dir);
	agent_end(path, program);
	path_remove(dir, NULL);
	snprintf(path, sizeof(path), "%s", dir);
	for (i = 0; i < 2 && (slash = strrchr(path, '/')); i++) {
		*slash = '\0';
		rmdir(path);
	}
}

void demo_sweep(void)
{
	char root[PATH_MAX - 300], dir[PATH_MAX];
	struct dirent *entry;
	DIR *d;
	int lock;

	if (path_of(PATH_CACHE, "demo", root, sizeof(root)))
		return;
	d = opendir(root);
	while (d && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", root, entry->d_name);
		lock = lock_take(dir);
		if (lock < 0)
			continue;
		lab_remove(dir, NULL);
		close(lock);
	}
	if (d)
		closedir(d);
}

int demo_open(struct deck *deck, struct err *err)
{
	char root[PATH_MAX - 64];
	json_t *doc;
	int r;

	demo_sweep();
	r = path_of(PATH_CACHE, "demo", root, sizeof(root));
	if (r)
		return err_set(err, r,
			       "no place for the demo: HOME is not set");
	snprintf(deck->demo_dir, sizeof(deck->demo_dir), "%s/%d", root,
		 (int)getpid());
	r = path_make(deck->demo_dir, err);
	if (!r)
		deck->demo_lock = lock_take(deck->demo_dir);
	doc = r || deck->demo_lock < 0 ? NULL : lab_doc(deck->demo_dir);
	if (!doc) {
		if (!r)
			r = err_set(err, -EIO,
				    "the demo cannot make its drives in %s",
				    deck->demo_dir);
		demo_close(deck);
		return r;
	}
	snprintf(deck->state_dir, sizeof(deck->state_dir), "%.*s/agent",
		 (int)sizeof(deck->state_dir) - 8, deck->demo_dir);
	json_decref(deck->cluster);
	deck->cluster = doc;
	deck->nodes = 1;
	*deck->node = (struct node) { 0 };
	return 0;
}

void demo_close(struct deck *deck)
{
	const char *program = deck_option(deck, "agent_program");

	if (!*deck->demo_dir)
		return;
	live_close(deck);
	lab_remove(deck->demo_dir, *program ? program : NULL);
	if (deck->demo_lock >= 0)
		close(deck->demo_lock);
	deck->demo_lock = -1;
	deck->demo_dir[0] = deck->state_dir[0] = '\0';
}
