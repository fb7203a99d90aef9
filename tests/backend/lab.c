/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/event.h"

#define LOG_MIB 512 /* of files that are mostly holes */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the lab ------------------------------------------------------------ */

const char *lab_layout = "inplace";

bool lab_is_log(void)
{
	return !strcmp(lab_layout, "log");
}

void lab_open(struct lab *lab)
{
	const char *bin = getenv("BIN_DIR");

	strcpy(lab->dir, "/tmp/iodeck-lab-XXXXXX");
	assert_non_null(mkdtemp(lab->dir));
	strcpy(lab->name, "t");
	snprintf(lab->state, sizeof(lab->state), "%s/state", lab->dir);
	snprintf(lab->program, sizeof(lab->program), "%s/iodeck-agent",
		 bin ? bin : "build/dev/bin");
}

pid_t lab_pid(const struct lab *lab)
{
	char path[128], text[32] = "";
	int fd;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s/lock", lab->state, lab->name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	pid = (pid_t)atol(text);
	return pid > 0 && !kill(pid, 0) ? pid : 0;
}

static void wait_gone(pid_t pid, int timeout_s)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	int64_t end = now_ms() + timeout_s * 1000;

	while (!kill(pid, 0) && now_ms() < end)
		nanosleep(&nap, NULL);
	assert_int_equal(kill(pid, 0), -1);
}

/* A daemon has no stderr but its log: a sanitizer or an assertion speaks
 * there. */
static void log_check(const struct lab *lab)
{
	char path[128], line[512];
	bool bad = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/log", lab->state, lab->name);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		bad = bad || strstr(line, "Sanitizer") ||
		      strstr(line, "runtime error") ||
		      strstr(line, "assertion failed");
		if (bad)
			fputs(line, stderr);
	}
	if (f)
		fclose(f);
	assert_false(bad);
}

void lab_close(struct lab *lab)
{
	pid_t pid = lab_pid(lab);
	char command[128];

	if (pid) {
		kill(pid, SIGTERM);
		wait_gone(pid, 20);
	}
	log_check(lab);
	snprintf(command, sizeof(command), "rm -rf '%s'", lab->dir);
	assert_int_equal(system(command), 0);
}

int lab_setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	lab_layout = "inplace";
	lab_open(lab);
	*state = lab;
	return 0;
}

int lab_setup_log(void **state)
{
	lab_setup(state);
	lab_layout = "log";
	return 0;
}

int lab_teardown(void **state)
{
	lab_close(*state);
	free(*state);
	return 0;
}

pid_t lab_daemon(struct lab *lab, const char *options)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "'%s' daemon --name %s --state-dir '%s' %s", lab->program,
		 lab->name, lab->state, options);
	assert_int_equal(system(command), 0);
	return lab_pid(lab);
}

json_t *lab_cluster(const struct lab *lab, int domains, int mib)
{
	json_t *list = json_array();
	char name[16], path[128];

	if (lab_is_log() && mib < LOG_MIB)
		mib = LOG_MIB;
	for (int k = 1; k <= domains; k++) {
		json_t *drives = json_array();

		for (int d = 0; d < 2; d++) {
			snprintf(path, sizeof(path), "%s/n%d/d%d", lab->dir, k,
				 d);
			snprintf(name, sizeof(name), "d%d", d);
			json_array_append_new(
				drives, json_pack("{s:s, s:s, s:i}", "name",
						  name, "path", path,
						  "size_bytes", mib << 20));
		}
		snprintf(name, sizeof(name), "n%d", k);
		json_array_append_new(list, json_pack("{s:s, s:o}", "name",
						      name, "drives", drives));
	}
	return json_pack("{s:{s:s, s:b, s:b, s:i, s:o}}", "cluster", "name",
			 "lab", "create", 1, "virtual", 1, "absent_delay_s", 2,
			 "domains", list);
}

json_t *lab_plan(const char *vdisk, int points, int length_ms)
{
	json_t *phases = json_array();

	json_array_append_new(phases, json_pack("{s:s, s:s}", "kind", "prefill",
						"vdisk", vdisk));
	for (int k = 0; k < points; k++)
		json_array_append_new(
			phases,
			json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
				  "s:s, s:f}",
				  "kind", "point", "series", 0, "point", k,
				  "points", points, "percent", 50, "length_us",
				  length_ms * 1000, "warmup_us", 100000,
				  "outstanding", 4, "schedule", "poisson",
				  "early_ci", 0.0));
	return json_pack("{s:s, s:i, s:i, s:[{s:s, s:s, s:i, s:{s:s, s:f, s:f, "
			 "s:[[i, f]], s:[[i, f]]}}], s:o}",
			 "title", "test", "interval_ms", 100, "seed", 1,
			 "series", "name", "s", "vdisk", vdisk, "max_iops", 400,
			 "workload", "name", "w", "read_share", 0.5,
			 "random_share", 1.0, "read_sizes", 4096, 1.0,
			 "write_sizes", 4096, 1.0, "phases", phases);
}

/* ---- the console -------------------------------------------------------- */

static void on_event(const json_t *event, void *arg)
{
	struct event_head head;
	struct hears *h = arg;

	assert_int_equal(event_head(event, &head, NULL), 0);
	if (head.i == h->last_i && head.n <= h->last_n)
		h->doubles++;
	if (head.i == h->last_i && head.n > h->last_n + 1)
		h->holes++;
	h->last_i = head.i;
	h->last_n = head.n;
	json_array_append(h->event, (json_t *)event);
	if (h->file >= 0) {
		size_t len;
		char *line;

		assert_int_equal(event_encode(event, &line, &len), 0);
		assert_int_equal(write(h->file, line, len), (ssize_t)len);
		free(line);
	}
	if (h->acks)
		link_conn_ack(h->link, head.i, head.n);
}

static void on_state(enum link_state state, const json_t *hello,
		     const char *reason, void *arg)
{
	struct hears *h = arg;

	h->state = state;
	if (hello) {
		json_decref(h->hello);
		h->hello = json_incref((json_t *)hello);
	}
	if (state == LINK_OPENING && h->choose)
		h->choose(h);
	snprintf(h->reason, sizeof(h->reason), "%s", reason ? reason : "");
}

void hears_turn(struct hears *h)
{
	struct pollfd p = { .fd = link_conn_fd(h->link), .events = POLLIN };

	poll(&p, 1, 50);
	link_conn_step(h->link);
}

bool hears_until(struct hears *h, bool (*so)(struct hears *h), int timeout_s)
{
	int64_t end = now_ms() + timeout_s * 1000;

	while (!so(h)) {
		if (now_ms() > end)
			return false;
		hears_turn(h);
	}
	return true;
}

static bool is_settled(struct hears *h)
{
	return h->state == LINK_UP || h->state == LINK_DOWN;
}

void hears_open(struct hears *h, struct lab *lab, const struct hears_opts *opts)
{
	const struct link_conn_opts lopts = {
		.agent = lab->name,
		.program = opts->program ? opts->program : lab->program,
		.state_dir = lab->state,
		.watch = opts->watch,
		.take = opts->take,
		.spawn = opts->spawn,
		.node = opts->node,
		.session = "/some/session",
		.from = opts->from,
		.from_count = opts->from_count,
		.event = on_event,
		.state = on_state,
		.arg = h,
	};
	struct err err = { 0 };

	*h = (struct hears) { .event = json_array(),
			      .acks = opts->acks,
			      .file = opts->file ? opts->file : -1 };
	if (link_conn_open(&lopts, &h->link, &err))
		fail_msg("%s", err.text);
	assert_true(hears_until(h, is_settled, 60));
}

void hears_close(struct hears *h)
{
	link_conn_close(h->link);
	json_decref(h->hello);
	json_decref(h->event);
	json_decref(h->answer);
	h->link = NULL;
}

void hears_attach(struct hears *h, struct lab *lab)
{
	hears_open(h, lab,
		   &(struct hears_opts) { .spawn = true, .acks = true });
	assert_int_equal(h->state, LINK_UP);
}

static void on_answer(const json_t *reply, void *arg)
{
	struct hears *h = arg;

	assert_false(h->answered);
	h->answered = true;
	h->answer = json_incref((json_t *)reply);
}

static bool is_answered(struct hears *h)
{
	return h->answered;
}

const json_t *hears_ask(struct hears *h, const char *what, json_t *body)
{
	json_decref(h->answer);
	h->answer = NULL;
	h->answered = false;
	assert_true(link_conn_ask(h->link, what, body, on_answer, h) > 0);
	assert_true(hears_until(h, is_answered, 60));
	return h->answer;
}

void hears_ask_ok(struct hears *h, const char *what, json_t *body)
{
	const json_t *answer = hears_ask(h, what, body);

	if (!json_is_true(json_object_get(answer, "ok")))
		fail_msg("%s: %s", what,
			 answer ? json_string_value(
					  json_object_get(answer, "error"))
				: h->reason);
}

void hears_ask_refused(struct hears *h, const char *what, json_t *body,
		       int code, const char *why)
{
	const json_t *answer = hears_ask(h, what, body);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (json_integer_value(json_object_get(answer, "code")) != code ||
	    !error || !strstr(error, why))
		fail_msg("%s: %lld \"%s\", not %d \"%s\"", what,
			 json_integer_value(json_object_get(answer, "code")),
			 error ? error : "", code, why);
}

void hears_fault(struct hears *h, const char *text)
{
	hears_ask_ok(h, "fault", json_pack("{s:s}", "text", text));
}

const json_t *hears_find(struct hears *h, const char *e, const char *member,
			 const char *value)
{
	for (size_t k = json_array_size(h->event); k-- > 0;) {
		const json_t *event = json_array_get(h->event, k);
		const char *is = member ? json_string_value(json_object_get(
						  event, member))
					: NULL;

		if (!strcmp(json_string_value(json_object_get(event, "e")),
			    e) &&
		    (!member || (is && !strcmp(is, value))))
			return event;
	}
	return NULL;
}

static const json_t *vdisk_says(struct hears *h, const char *vdisk,
				const char *member)
{
	return json_object_get(hears_find(h, "vdisk", "name", vdisk), member);
}

const char *hears_vdisk_text(struct hears *h, const char *vdisk,
			     const char *member)
{
	const char *text = json_string_value(vdisk_says(h, vdisk, member));

	return text ? text : "";
}

json_int_t hears_vdisk_int(struct hears *h, const char *vdisk,
			   const char *member)
{
	return json_integer_value(vdisk_says(h, vdisk, member));
}

unsigned hears_count(struct hears *h, const char *e)
{
	unsigned count = 0;
	const json_t *event;
	size_t k;

	json_array_foreach(h->event, k, event)
		count += !strcmp(json_string_value(json_object_get(event, "e")),
				 e);
	return count;
}

bool run_is_over(struct hears *h)
{
	return hears_find(h, "run_state", "state", "done") ||
	       hears_find(h, "run_state", "state", "failed") ||
	       hears_find(h, "run_state", "state", "stopped") ||
	       h->state == LINK_DOWN;
}

void lab_fill(struct hears *h, const char *vdisk)
{
	hears_ask_ok(h, "run_start",
		     json_pack("{s:o, s:s}", "plan", lab_plan(vdisk, 0, 0),
			       "run", "fill"));
	assert_true(hears_until(h, run_is_over, 60));
	assert_non_null(hears_find(h, "run_state", "state", "done"));
}

bool link_is_down(struct hears *h)
{
	return h->state == LINK_DOWN;
}

bool link_is_up(struct hears *h)
{
	return h->state == LINK_UP;
}
