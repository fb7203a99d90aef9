/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recording. The agent keeps an event until it is told that it is on disk, so
 * only what session_written() vouches for is acknowledged; what a killed
 * console had not written comes again to the next one.
 */
#include "backend/deck_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/paths.h"

/* ---- marks: where the agents shall go on -------------------------------- */

struct marks {
	struct session_mark *at;
	size_t count;
};

static int marks_put(struct marks *m, const char *a, int64_t i, int64_t n)
{
	struct session_mark *more;
	size_t k;

	for (k = 0; k < m->count; k++)
		if (m->at[k].i == i && !strcmp(m->at[k].a, a)) {
			if (n > m->at[k].n)
				m->at[k].n = n;
			return 0;
		}
	more = realloc(m->at, (m->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	m->at = more;
	more += m->count++;
	snprintf(more->a, sizeof(more->a), "%s", a);
	more->i = i;
	more->n = n;
	return 0;
}

static void marks_of_writer(const struct deck *deck, struct marks *m)
{
	const struct session_mark *mark;
	size_t count, k;

	count = session_marks(deck->writer, &mark);
	for (k = 0; k < count; k++)
		marks_put(m, mark[k].a, mark[k].i, mark[k].n);
}

/* Those of one agent, as its link wants them. */
static int marks_give(const struct marks *m, struct fleet_node *node,
		      const char *session, bool take)
{
	int64_t(*from)[2] = calloc(m->count + 1, sizeof(*from));
	size_t n = 0, k;
	int r;

	if (!from)
		return -ENOMEM;
	for (k = 0; k < m->count; k++) {
		if (strcmp(m->at[k].a, node->agent) != 0)
			continue;
		from[n][0] = m->at[k].i;
		from[n++][1] = m->at[k].n;
	}
	r = fleet_from(node, session, (const int64_t(*)[2])from, n, take);
	free(from);
	return r;
}

/* ---- reading a session ----------------------------------------------------
 */

/* Folds a file into a model, and notes how far it has whose events. */
static int fold(const char *path, struct model *model, struct marks *marks,
		uint64_t *torn_bytes, struct err *err)
{
	struct session_reader *reader;
	struct event_head head;
	json_t *event;
	int r;

	r = session_open(path, &reader, torn_bytes, err);
	if (r)
		return r;
	while ((r = session_next(reader, &event, err)) != -ENODATA) {
		if (r == -EBADMSG)
			continue;
		if (r)
			break;
		model_apply(model, event, NULL);
		if (marks && !event_head(event, &head, NULL))
			marks_put(marks, head.a, head.i, head.n);
		json_decref(event);
	}
	session_reader_free(reader);
	return r == -ENODATA ? 0 : r;
}

int session_model(const char *path, struct model **model, uint64_t *torn_bytes,
		  struct err *err)
{
	int r;

	if (model_new(model))
		return err_set(err, -ENOMEM, "out of memory");
	r = fold(path, *model, NULL, torn_bytes, err);
	if (r) {
		model_free(*model);
		*model = NULL;
	}
	return r;
}

static void model_take(struct deck *deck, struct model *model)
{
	model_free(deck->model);
	deck->model = model;
}

/* ---- making a file --------------------------------------------------------
 */

int record_dir(const struct deck *deck, char *buf, size_t len, struct err *err)
{
	const char *dir = deck_option(deck, "session_dir");
	int r;

	if (*dir)
		r = path_expand(dir, buf, len);
	else
		r = path_of(PATH_DATA, "sessions", buf, len);
	if (r)
		return err_set(err, r,
			       "no place for sessions: HOME is not set; say "
			       "session_dir in iodeck.conf");
	return path_make(buf, err);
}

static void stamp_text(char *buf, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(buf, len, "%Y%m%d-%H%M%S", &tm);
}

/* A name that is not taken yet: two consoles may start in one second. */
static int path_choose(struct deck *deck, struct err *err)
{
	char dir[PATH_MAX - 128], stamp[32];
	int r, i;

	r = record_dir(deck, dir, sizeof(dir), err);
	if (r)
		return r;
	stamp_text(stamp, sizeof(stamp));
	for (i = 1; i < 100; i++) {
		char more[8] = "";

		if (i > 1)
			snprintf(more, sizeof(more), "-%d", i);
		snprintf(deck->session_path, sizeof(deck->session_path),
			 "%s/%s-%.40s%s.jsonl.zst", dir, stamp, deck->agent,
			 more);
		if (!path_exists(deck->session_path))
			return 0;
	}
	return err_set(err, -EEXIST, "%s: too many sessions in one second",
		       dir);
}

static void open_record(struct deck *deck)
{
	const char *title =
		json_string_value(json_object_get(deck->cluster, "title"));
	char id[MODEL_NAME], stamp[16];
	json_t *body, *config;

	stamp_text(stamp, sizeof(stamp));
	snprintf(id, sizeof(id), "%s-%.40s", stamp, deck->agent);
	config = json_object();
	if (deck->cluster)
		json_object_set(config, "cluster", deck->cluster);
	body = json_pack("{s:i,s:s,s:s,s:s,s:o,s:s}", "v", 1, "iodeck",
			 IODECK_VERSION, "session", id, "title",
			 title ? title : deck->agent, "config", config,
			 "command", deck->command ? deck->command : "");
	if (body)
		record_own(deck, "open", body);
}

static int record_new(struct deck *deck, struct err *err)
{
	bool wanted = *deck->session_want;
	int r;

	if (wanted)
		snprintf(deck->session_path, sizeof(deck->session_path), "%s",
			 deck->session_want);
	else
		r = path_choose(deck, err);
	if (!wanted && r)
		return r;
	r = session_create(deck->session_path, false, &deck->writer, err);
	if (r)
		return r;
	deck->keep = wanted && !deck->want_run;
	open_record(deck);
	return 0;
}

/* ---- which session ---------------------------------------------------------
 */

/* A run goes on where its vDisks are. */
static int session_is_ours(const struct deck *deck, const char *path,
			   const struct model *model, struct err *err)
{
	const char *name =
		json_string_value(json_object_get(deck->cluster, "name"));

	if (!*model->cluster || (name && !strcmp(name, model->cluster)))
		return 0;
	return err_set(err, -EINVAL,
		       "%s is of cluster %s; %s is configured here: go on "
		       "with it where that cluster is",
		       path, model->cluster, name ? name : "none");
}

int record_resume(struct deck *deck, const char *path, struct err *err)
{
	struct model *model = NULL;
	uint64_t torn;
	int r;

	if (deck->writer)
		return err_set(err, -EBUSY, "recording to %s already",
			       deck->session_path);
	/* Read first: going on with a file makes it where it is not there. */
	r = session_model(path, &model, &torn, err);
	if (!r)
		r = session_is_ours(deck, path, model, err);
	if (!r)
		r = session_create(path, true, &deck->writer, err);
	if (r) {
		model_free(model);
		return r;
	}
	model_take(deck, model);
	snprintf(deck->session_path, sizeof(deck->session_path), "%s", path);
	deck->keep = true;
	return 0;
}

static const char *session_of(const struct fleet_node *node)
{
	const char *path =
		json_string_value(json_object_get(node->hello, "session"));

	return path && path_exists(path) ? path : NULL;
}

/*
 * An agent's own session goes on when its run does, or when the console that
 * wrote it was killed; else its events begin a new one, behind what the old
 * one has. True: it goes on, or its writer lives and is to be watched.
 */
static bool session_goes_on(struct deck *deck, const char *path, bool running,
			    struct err *err)
{
	struct model *model;
	uint64_t torn;
	int r;

	if (*deck->session_want || model_new(&model))
		return false;
	r = fold(path, model, NULL, &torn, NULL);
	if (r || (!running && model->closed)) {
		model_free(model);
		return false;
	}
	r = session_create(path, true, &deck->writer, err);
	if (r) {
		model_free(model);
		if (r == -EBUSY)
			fleet_rewatch(deck->fleet);
		return r == -EBUSY;
	}
	snprintf(deck->session_path, sizeof(deck->session_path), "%s", path);
	deck->keep = true;
	model_take(deck, model);
	return true;
}

/* That of a run first; each file is looked at once. */
static int session_pick(struct deck *deck, struct fleet_node *const *node,
			size_t count, struct err *err)
{
	for (int idle = 0; idle < 2; idle++) {
		const char *before = "", *path;

		for (size_t k = 0; k < count; k++) {
			path = session_of(node[k]);
			if (!path || node[k]->running == (bool)idle ||
			    !strcmp(path, before))
				continue;
			before = path;
			if (session_goes_on(deck, path, !idle, err))
				return 0;
		}
	}
	return record_new(deck, err);
}

static void watched_read(struct deck *deck, const char *path,
			 struct marks *marks)
{
	struct model *model;
	uint64_t torn;

	if (model_new(&model))
		return;
	if (fold(path, model, marks, &torn, NULL)) {
		model_free(model);
		marks->count = 0;
		return;
	}
	model_take(deck, model);
	snprintf(deck->session_path, sizeof(deck->session_path), "%s", path);
}

/* What its owners write; what others of them say later follows by itself. */
static int choose_watched(struct deck *deck, struct fleet_node *const *node,
			  size_t count)
{
	struct marks marks = { 0 };
	const char *path = NULL;
	size_t k;
	int r = 0;

	if (fleet_state(deck->fleet) == FLEET_UP)
		return 0;
	for (k = 0; k < count && !path; k++)
		path = session_of(node[k]);
	if (path)
		watched_read(deck, path, &marks);
	for (k = 0; k < count && !r; k++)
		r = marks_give(&marks, node[k], NULL, false);
	free(marks.at);
	return r;
}

/* Of a session that this console writes, an agent that names it had this
 * console, and had only not noticed that its link was lost. */
static bool is_ours(const struct deck *deck, const struct fleet_node *node)
{
	const char *path = session_of(node);

	return node->ups && path && deck->writer &&
	       !strcmp(path, deck->session_path);
}

/* What the file has, and of an agent that another file is of, what that has. */
static int choose_marks(struct deck *deck, struct fleet_node *const *node,
			size_t count)
{
	struct marks marks = { 0 }, more = { 0 };
	const char *read = deck->session_path;
	struct model *model;
	uint64_t torn;
	int r = 0;

	if (deck->writer)
		marks_of_writer(deck, &marks);
	for (size_t k = 0; k < count && !r; k++) {
		const char *path = session_of(node[k]);

		if (deck->writer && path && strcmp(path, read) != 0 &&
		    strcmp(path, deck->session_path) != 0 &&
		    !model_new(&model)) {
			fold(path, model, &more, &torn, NULL);
			model_free(model);
			read = path;
		}
		for (size_t i = 0; i < more.count; i++)
			marks_put(&marks, more.at[i].a, more.at[i].i,
				  more.at[i].n);
		r = marks_give(&marks, node[k],
			       deck->writer ? deck->session_path : NULL,
			       is_ours(deck, node[k]));
	}
	free(marks.at);
	free(more.at);
	return r;
}

int record_choose(struct deck *deck, struct fleet_node *const *node,
		  size_t count, struct err *err)
{
	int r = 0;

	if (live_watching(deck))
		return choose_watched(deck, node, count);
	if (!deck->writer && deck->none) {
		/* What is being recorded elsewhere is not ours to take. */
		for (size_t k = 0; k < count; k++)
			if (node[k]->running)
				fleet_rewatch(deck->fleet);
	} else if (!deck->writer) {
		r = session_pick(deck, node, count, err);
	}
	if (!r && choose_marks(deck, node, count))
		r = err_set(err, -ENOMEM, "out of memory");
	return r;
}

/* ---- events ----------------------------------------------------------------
 */

static void event_fold(struct deck *deck, const json_t *event)
{
	const char *e = json_string_value(json_object_get(event, "e"));

	if (!model_apply(deck->model, event, NULL))
		deck->applied++;
	if (e && (!strcmp(e, "run") || !strcmp(e, "note")))
		deck->keep = true;
}

static void ack_at_once(struct fleet_node *node, const json_t *event)
{
	struct event_head head;

	if (!event_head(event, &head, NULL))
		link_conn_ack(node->link, head.i, head.n);
}

void record_event(struct deck *deck, struct fleet_node *node,
		  const json_t *event)
{
	struct err err;
	int r;

	if (deck->writer) {
		r = session_append(deck->writer, event, &err);
		if (r == -EALREADY)
			return;
		if (r) {
			snprintf(deck->disk_text, sizeof(deck->disk_text),
				 "%.190s", err.text);
			fleet_drop(deck->fleet, deck->disk_text);
			return;
		}
	} else if (!live_watching(deck)) {
		ack_at_once(node, event);
	}
	event_fold(deck, event);
}

void record_own(struct deck *deck, const char *e, json_t *body)
{
	if (!event_stamp(&deck->console, e, event_now_us(), body)) {
		if (deck->writer)
			session_append(deck->writer, body, NULL);
		event_fold(deck, body);
	}
	json_decref(body);
}

/* ---- what is on disk -------------------------------------------------------
 */

static int64_t *acked_of(struct deck *deck, const char *a, int64_t i)
{
	struct mark *more;
	size_t k;

	for (k = 0; k < deck->acked_count; k++)
		if (deck->acked[k].i == i && !strcmp(deck->acked[k].a, a))
			return &deck->acked[k].n;
	more = realloc(deck->acked, (deck->acked_count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	deck->acked = more;
	more[deck->acked_count] = (struct mark) { .i = i };
	snprintf(more[deck->acked_count].a, sizeof(more->a), "%s", a);
	return &more[deck->acked_count++].n;
}

static void ack_written(struct deck *deck)
{
	const struct session_mark *mark;
	size_t count = session_marks(deck->writer, &mark), k;
	struct fleet_node *node;
	int64_t written, *acked;

	for (k = 0; k < count; k++) {
		node = fleet_by_agent(deck->fleet, mark[k].a);
		if (!node || node->state != FLEET_UP)
			continue;
		acked = acked_of(deck, mark[k].a, mark[k].i);
		written = session_written(deck->writer, mark[k].a, mark[k].i);
		if (!acked || written <= *acked)
			continue;
		*acked = written;
		link_conn_ack(node->link, mark[k].i, written);
	}
}

void record_tick(struct deck *deck, bool force)
{
	struct err err;

	if (!deck->writer)
		return;
	if (session_tick(deck->writer, force, &err) < 0)
		snprintf(deck->disk_text, sizeof(deck->disk_text), "%.190s",
			 err.text);
	else
		deck->disk_text[0] = '\0';
	if (deck->fleet)
		ack_written(deck);
}

void record_close(struct deck *deck, const char *reason)
{
	struct err err;

	if (!deck->writer)
		return;
	record_own(deck, "close", json_pack("{s:s}", "reason", reason));
	record_tick(deck, true);
	if (session_close(deck->writer, &err))
		snprintf(deck->disk_text, sizeof(deck->disk_text), "%.190s",
			 err.text);
	deck->writer = NULL;
	if (!deck->keep)
		unlink(deck->session_path);
}
