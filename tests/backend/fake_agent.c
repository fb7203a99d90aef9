/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_agent.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/event.h"

static const char *self, *words;
static struct event_stamp stamp;

void fake_is(const char *agent, const char *is)
{
	char name[96];

	snprintf(name, sizeof(name), "FAKE_%s", agent);
	if (is)
		setenv(name, is, 1);
	else
		unsetenv(name);
}

/* What follows a word, or NULL. */
static const char *word(const char *w)
{
	const char *at = strstr(words, w);

	return at ? at + strlen(w) : NULL;
}

static void put(json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);

	printf("%s\n", text);
	fflush(stdout);
	free(text);
	json_decref(line);
}

static void say(const char *e, json_t *body)
{
	if (!event_stamp(&stamp, e, event_now_us(), body))
		put(body);
}

static void hello(void)
{
	char path[256] = "";

	if (word("session="))
		sscanf(word("session="), "%255s", path);
	stamp.i = event_now_us();
	snprintf(stamp.a, sizeof(stamp.a), "%s", self);
	put(json_pack("{s:s, s:i, s:s, s:I, s:i, s:s, s:s, s:s?, s:[], s:i}",
		      "iodeck", "agent", "v", 1, "a", self, "i",
		      (json_int_t)stamp.i, "pid", (int)getpid(), "version",
		      "0.0", "state", word("running") ? "running" : "idle",
		      "session", *path ? path : NULL, "oldest", "next", 1));
}

static void log_request(const json_t *request)
{
	const char *path = getenv("FAKE_LOG");
	FILE *f = path ? fopen(path, "ae") : NULL;
	char *text = json_dumps(request, JSON_COMPACT | JSON_SORT_KEYS);

	if (f) {
		fprintf(f, "%s %s\n", self, text);
		fclose(f);
	}
	free(text);
}

static void opened(void)
{
	char name[96];
	json_t *ask;

	say("cluster",
	    json_pack("{s:s, s:[{s:s, s:[]}]}", "name", "t", "domains", "name",
		      strchr(self, '.') ? strchr(self, '.') + 1 : self,
		      "drives"));
	snprintf(name, sizeof(name), "ASK_%s", self);
	ask = getenv(name) ? json_loads(getenv(name), 0, NULL) : NULL;
	if (ask)
		put(ask);
}

/* A node that is fit, but for CHECK_NAME: a member and what it is instead. */
static void node_check(json_t *ok)
{
	json_t *fit = json_pack(
		"{s:i, s:{s:b, s:s, s:f}, s:{s:i}, s:{s:b}, s:{s:{s:b}}, "
		"s:[{s:b, s:s, s:b, s:s, s:s, s:i}]}",
		"uid", 0, "state_dir", "ok", 1, "path", "/s", "free_bytes", 9e9,
		"limits", "nofile_max", 20000, "io_uring", "ok", 1, "tools",
		"nbdkit", "ok", 1, "drives", "ok", 1, "path", "/d", "writable",
		1, "kind", "directory", "verdict", "empty", "size_bytes",
		1 << 30);
	char name[96];
	json_t *other;

	snprintf(name, sizeof(name), "CHECK_%s", self);
	other = getenv(name) ? json_loads(getenv(name), 0, NULL) : NULL;
	json_object_update_new(fit, other ? other : json_object());
	json_object_update_new(ok, fit);
}

static json_t *answer(const char *what, const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	json_t *ok = json_pack("{s:b}", "ok", 1);

	if (!strcmp(what, "ping"))
		json_object_set_new(
			ok, "t_us",
			json_integer(
				event_now_us() +
				(word("skew=") ? atoll(word("skew=")) : 0)));
	else if (!strcmp(what, "export_open"))
		json_object_set(ok, "got", (json_t *)request);
	else if (!strcmp(what, "vdisk_create"))
		say("vdisk",
		    json_pack("{s:s, s:s}", "name", name, "state", "healthy"));
	else if (!strcmp(what, "node_check"))
		node_check(ok);
	else if (!strcmp(what, "link_listen"))
		json_object_set_new(ok, "port", json_integer(20000));
	else if (!strcmp(what, "link_measure"))
		json_object_update_new(
			ok, json_pack("{s:f, s:f, s:{s:f}}", "out_bytes_s",
				      125e6, "in_bytes_s", 25e6, "rtt_us",
				      "median", 120.0));
	else if (!strcmp(what, "policy_set"))
		json_object_set_new(ok, "moves", json_pack("[s]", self));
	return ok;
}

static json_t *refusal(int code, const char *why)
{
	return json_pack("{s:b, s:i, s:s}", "ok", 0, "code", code, "error",
			 why);
}

static void asked(const char *what, const json_t *request)
{
	json_t *reply;

	if (!strcmp(what, "export_open") && word("drops"))
		_exit(0);
	if (!strcmp(what, "attach") && word("busy") &&
	    !json_is_true(json_object_get(request, "watch")))
		reply = refusal(-16, "it has a console already");
	else if (!strcmp(what, "cluster_open") && word("refuses"))
		reply = refusal(-22, "no such drives");
	else
		reply = answer(what, request);
	json_object_set(reply, "re", json_object_get(request, "id"));
	put(reply);
	if ((!strcmp(what, "cluster_open") && !word("refuses")) ||
	    (!strcmp(what, "attach") && word("running")))
		opened();
	if (!strcmp(what, "quit"))
		_exit(0);
}

static void line_take(const char *line)
{
	json_t *request = json_loads(line, 0, NULL);
	const char *what = json_string_value(json_object_get(request, "do"));

	if (json_object_get(request, "told")) {
		log_request(request);
	} else if (what && strcmp(what, "ack") != 0) {
		if (strcmp(what, "ping") != 0)
			log_request(request);
		asked(what, request);
	}
	json_decref(request);
}

void fake_agent(int argc, char *const argv[])
{
	char name[96], *line = NULL;
	size_t room = 0;

	if (argc < 4 || strcmp(argv[1], "attach") != 0)
		return;
	self = argv[3];
	snprintf(name, sizeof(name), "FAKE_%s", self);
	words = getenv(name) ? getenv(name) : "";
	if (word("dead"))
		_exit(0);
	if (!word("silent"))
		hello();
	while (getline(&line, &room, stdin) > 0)
		line_take(line);
	while (word("deaf"))
		pause();
	_exit(0);
}
