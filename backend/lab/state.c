/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state file of a lab: one JSON object, replaced as a whole. Its words are
 * believed only within narrow bounds, and no name of anything that is removed
 * comes out of it.
 */
#include "backend/lab/lab_impl.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define VERSION 1
#define LOCK "/run"
#define LOCK_WAIT_MS 30000

/* ---- text --------------------------------------------------------------- */

char *lab_state_text(const struct lab *lab)
{
	json_t *nodes = json_array(), *j;
	char net[LAB_WORD];
	char *text;
	int i;

	for (i = 0; i < lab->nodes; i++)
		json_array_append_new(
			nodes,
			json_pack("{s:b,s:b,s:f}", "failed",
				  lab->node[i].failed, "cut", lab->node[i].cut,
				  "rate_bytes_s", lab->node[i].rate_bytes_s));
	snprintf(net, sizeof(net), "%u.%u.%u.0/24", lab->net >> 24,
		 lab->net >> 16 & 255, lab->net >> 8 & 255);
	j = json_pack("{s:i,s:s,s:s,s:i,s:I,s:f,s:b,s:b,s:s,s:o}", "v", VERSION,
		      "name", lab->name, "net", net, "drives", lab->drives,
		      "drive_bytes", (json_int_t)lab->drive_bytes,
		      "link_bytes_s", lab->link_bytes_s, "ready", lab->ready,
		      "netns_made", lab->netns_made, "made", lab->made, "nodes",
		      nodes);
	text = j ? json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(12))
		 : NULL;
	json_decref(j);
	return text;
}

static bool number_in(const json_t *j, const char *key, double min, double max,
		      double *value)
{
	const json_t *n = json_object_get(j, key);

	*value = json_number_value(n);
	return json_is_number(n) && *value >= min && *value <= max;
}

static bool flag(const json_t *j, const char *key, bool *value)
{
	const json_t *b = json_object_get(j, key);

	*value = json_is_true(b);
	return json_is_boolean(b);
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static const char *read_nodes(const json_t *j, struct lab *lab)
{
	const json_t *nodes = json_object_get(j, "nodes"), *n;
	size_t i, count = json_array_size(nodes);

	if (!count || count > LAB_NODES_MAX)
		return "nodes";
	json_array_foreach(nodes, i, n) {
		if (!flag(n, "failed", &lab->node[i].failed) ||
		    !flag(n, "cut", &lab->node[i].cut) ||
		    !number_in(n, "rate_bytes_s", 1, 1e12,
			       &lab->node[i].rate_bytes_s))
			return "a node";
	}
	lab->nodes = (int)count;
	return NULL;
}

/* Where the root was made: the root or something above it, and no more. */
static bool made_is_good(const struct lab *lab, const char *made)
{
	size_t n = strlen(made);

	return !n || (n < sizeof(lab->made) && n > 1 && made[0] == '/' &&
		      !strncmp(lab->root, made, n) &&
		      (lab->root[n] == '/' || !lab->root[n]));
}

/* NULL: good; else what is not. */
static const char *read_members(const json_t *j, struct lab *lab)
{
	double v;

	if (!number_in(j, "v", VERSION, VERSION, &v))
		return "v";
	if (strcmp(text_of(j, "name"), lab->name) != 0)
		return "name";
	if (lab_net_parse(text_of(j, "net"), &lab->net, NULL))
		return "net";
	if (!number_in(j, "drives", 0, LAB_DRIVES_MAX, &v) || v != floor(v))
		return "drives";
	lab->drives = (int)v;
	if (!number_in(j, "drive_bytes", 1, 0x1p62, &lab->drive_bytes))
		return "drive_bytes";
	if (!number_in(j, "link_bytes_s", 1, 1e12, &lab->link_bytes_s))
		return "link_bytes_s";
	if (!flag(j, "ready", &lab->ready))
		return "ready";
	if (!flag(j, "netns_made", &lab->netns_made))
		return "netns_made";
	if (!made_is_good(lab, text_of(j, "made")))
		return "made";
	snprintf(lab->made, sizeof(lab->made), "%s", text_of(j, "made"));
	return read_nodes(j, lab);
}

int lab_state_read(const char *text, size_t len, struct lab *lab,
		   struct err *err)
{
	json_error_t why;
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	const char *bad;

	if (!j)
		return err_set(
			err, -EUCLEAN,
			"the state of the lab %s cannot be read (line "
			"%d: %.80s); \"iodeck lab down name=%s\" removes "
			"the lab all the same",
			lab->name, why.line, why.text, lab->name);
	bad = read_members(j, lab);
	json_decref(j);
	if (!bad)
		return 0;
	return err_set(err, -EUCLEAN,
		       "the state of the lab %s makes no sense (\"%s\"); "
		       "\"iodeck lab down name=%s\" removes the lab all the "
		       "same",
		       lab->name, bad, lab->name);
}

/* ---- file --------------------------------------------------------------- */

int lab_state_load(struct lab *lab, struct err *err)
{
	char path[PATH_MAX], buf[LAB_STATE_MAX + 1];
	struct stat st;
	ssize_t n = -1;
	int fd;

	lab_path(lab, "state.json", path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, -ENOENT,
			       "there is no lab %s: make one with \"iodeck lab "
			       "up\"",
			       lab->name);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && !(st.st_mode & 022))
		n = read(fd, buf, sizeof(buf));
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	if (n < 0 || n > LAB_STATE_MAX)
		return err_set(
			err, -EUCLEAN,
			"%s: expected a small file that belongs to the "
			"user and that nobody else may write; \"iodeck "
			"lab down name=%s\" removes the lab all the same",
			path, lab->name);
	return lab_state_read(buf, (size_t)n, lab, err);
}

int lab_state_save(const struct lab *lab, struct err *err)
{
	char path[PATH_MAX], *text = lab_state_text(lab);
	int r;

	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	r = lab_file_write(lab_path(lab, "state.json", path, sizeof(path)),
			   text, 0600, err);
	free(text);
	return r;
}

/* ---- lock --------------------------------------------------------------- */

/*
 * Names of namespaces are the host's, whichever directory a lab is in: so is
 * the lock, on the directory that theirs is in. The programs that are run have
 * it as well, so that the last of those of a killed iodeck has ended, too, when
 * somebody else begins.
 */
int lab_lock(struct err *err)
{
	struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	int fd = open(LOCK, O_RDONLY | O_DIRECTORY), tries;

	if (fd < 0)
		return err_set(err, -errno, LOCK ": %s", strerror(errno));
	for (tries = 0; tries < LOCK_WAIT_MS / 20; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		nanosleep(&nap, NULL);
	}
	close(fd);
	return err_set(err, -EBUSY,
		       "another iodeck is making or changing a lab: wait for "
		       "it, or end it");
}
