/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/deck_impl.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "backend/complete.h"

static int64_t monotonic_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t (*deck_clock)(void) = monotonic_us;

/* ---- open, close -------------------------------------------------------- */

/* One at least: this machine. */
static int nodes_read(struct deck *deck, struct err *err)
{
	const struct config *c = deck->config;
	int r = 0;

	deck->nodes = c->nodes ? json_array_size(c->nodes) : 1;
	deck->node = calloc(deck->nodes, sizeof(*deck->node));
	if (!deck->node)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t k = 0; c->nodes && !r && k < deck->nodes; k++)
		r = node_read(json_array_get(c->nodes, k), &deck->node[k], err);
	return c->node ? node_read(c->node, deck->node, err) : r;
}

static int deck_init(struct deck *deck, const struct deck_opts *opts,
		     struct err *err)
{
	const char *path = opts->session_path;
	int r;

	deck->demo_lock = -1;
	deck->watch = opts->watch;
	deck->none = path && !*path;
	if (path)
		snprintf(deck->session_want, sizeof(deck->session_want), "%s",
			 path);
	if (opts->command)
		deck->command = strdup(opts->command);
	deck->console.i = event_now_us();
	snprintf(deck->console.a, sizeof(deck->console.a), "console");
	r = config_load(opts->config_path, &deck->config, err);
	if (r)
		return r;
	deck->cluster = json_incref(deck->config->cluster);
	r = nodes_read(deck, err);
	if (r)
		return r;
	deck->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (deck->epfd < 0)
		return err_set(err, -errno, "epoll: %s", strerror(errno));
	if (model_new(&deck->model))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

int deck_open(const struct deck_opts *opts, struct deck **deck, struct err *err)
{
	struct deck *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return err_set(err, -ENOMEM, "out of memory");
	d->epfd = -1;
	r = deck_init(d, opts, err);
	if (r) {
		deck_close(d);
		return r;
	}
	*deck = d;
	return 0;
}

static void pending_free(struct pending *p)
{
	json_decref(p->body);
	json_decref(p->merged);
	outcome_free(&p->outcome);
	if (p->order_free)
		p->order_free(p->order);
	free(p);
}

static void overlays_free(struct deck *deck)
{
	size_t i;

	for (i = 0; i < deck->overlays; i++)
		curve_fini(&deck->overlay[i].curve);
	free(deck->overlay);
	deck->overlay = NULL;
	deck->overlays = 0;
}

void deck_close(struct deck *deck)
{
	struct pending *p;

	if (!deck)
		return;
	if (deck->config && deck->model) {
		replay_close(deck);
		demo_close(deck);
		live_close(deck);
	}
	while ((p = deck->pending)) {
		deck->pending = p->next;
		pending_free(p);
	}
	overlays_free(deck);
	config_free(deck->config);
	json_decref(deck->cluster);
	model_free(deck->model);
	free(deck->acked);
	free(deck->node);
	free(deck->command);
	if (deck->epfd >= 0)
		close(deck->epfd);
	free(deck);
}

/* ---- turning --------------------------------------------------------------
 */

int deck_fd(const struct deck *deck)
{
	return deck->epfd;
}

int deck_timeout_ms(const struct deck *deck)
{
	return deck->reader ? replay_timeout_ms(deck) : live_timeout_ms(deck);
}

unsigned deck_step(struct deck *deck)
{
	deck->applied = 0;
	if (deck->reader)
		replay_step(deck);
	else
		live_step(deck);
	return deck->applied;
}

/* ---- what it shows --------------------------------------------------------
 */

const struct model *deck_model(const struct deck *deck)
{
	return deck->model;
}

size_t deck_overlays(const struct deck *deck,
		     const struct deck_overlay **overlay)
{
	*overlay = deck->overlay;
	return deck->overlays;
}

int deck_overlay_add(struct deck *deck, const struct curve *curve)
{
	struct deck_overlay *o;

	o = realloc(deck->overlay, (deck->overlays + 1) * sizeof(*o));
	if (!o)
		return -ENOMEM;
	deck->overlay = o;
	o += deck->overlays;
	o->curve = *curve;
	o->curve.point = calloc(curve->points + 1, sizeof(*curve->point));
	if (!o->curve.point)
		return -ENOMEM;
	if (curve->points)
		memcpy(o->curve.point, curve->point,
		       curve->points * sizeof(*curve->point));
	json_incref(o->curve.facts);
	deck->overlays++;
	return 0;
}

void deck_overlay_clear(struct deck *deck)
{
	overlays_free(deck);
}

void deck_status(const struct deck *deck, struct deck_status *s)
{
	memset(s, 0, sizeof(*s));
	s->link = deck->reader ? LINK_REPLAY : live_state(deck);
	if (*deck->disk_text)
		snprintf(s->text, sizeof(s->text), "%s", deck->disk_text);
	else if (deck->reader)
		snprintf(s->text, sizeof(s->text), "%s", deck->replay_text);
	else
		live_text(deck, s->text, sizeof(s->text));
	s->recording = deck->writer && !deck->reader;
	snprintf(s->session_path, sizeof(s->session_path), "%.255s",
		 deck->session_path);
	if (deck->writer)
		s->recorded_bytes = session_bytes(deck->writer);
	s->playing = deck->playing;
	s->speed = deck->speed;
	s->from_us = deck->from_us;
	s->to_us = deck->to_us;
	s->at_us = deck->at_us;
}

const char *deck_option(const struct deck *deck, const char *name)
{
	return options_text(deck->config->options, name);
}

int deck_option_set(struct deck *deck, const char *name, const char *value,
		    struct err *err)
{
	return options_set(deck->config->options, name, value, err);
}

/* ---- outcomes -------------------------------------------------------------
 */

void outcome_free(struct outcome *outcome)
{
	free(outcome->text);
	json_decref(outcome->json);
	memset(outcome, 0, sizeof(*outcome));
}

static void ID_PRINTF(2, 0)
	say(struct outcome *outcome, const char *fmt, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	free(outcome->text);
	outcome->text = text;
}

int outcome_say(struct outcome *outcome, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(outcome, fmt, ap);
	va_end(ap);
	return 0;
}

int outcome_fail(struct outcome *outcome, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(outcome, fmt, ap);
	va_end(ap);
	outcome->status = status;
	return 0;
}

void outcome_view(struct outcome *outcome, const char *view)
{
	snprintf(outcome->view, sizeof(outcome->view), "%s", view);
}

/* ---- commands -------------------------------------------------------------
 */

/* What changes something is part of the record. */
static void cmd_record(struct deck *deck, const struct command *command,
		       int argc, char *const argv[],
		       const struct outcome *outcome)
{
	char text[512];
	json_t *body;
	size_t n = 0;
	int i;

	if (!(command->where & CMD_ACTS) || deck->reader)
		return;
	for (i = 0; i < argc && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      i ? " " : "", argv[i]);
	body = json_pack("{s:s%,s:b}", "text", text, strlen(text), "ok",
			 outcome->status == 0);
	if (!body)
		return;
	if (outcome->status && outcome->text)
		json_object_set_new(body, "reply", json_string(outcome->text));
	record_own(deck, "cmd", body);
}

/* where: CMD_PROMPT of a line that was typed there, or 0: the caller knows. */
static int do_argv(struct deck *deck, int argc, char *const argv[],
		   unsigned where, struct outcome *outcome)
{
	const struct command *command;
	struct err err;
	int used;

	memset(outcome, 0, sizeof(*outcome));
	command = command_find(argc, argv, &used);
	if (!command) {
		command_unknown(argc, argv, CMD_SHELL | CMD_PROMPT, &err);
		return outcome_fail(outcome, 2, "%s", err.text);
	}
	/* It may block, or print what is for a shell. */
	if (where && !(command->where & where))
		return outcome_fail(outcome, 2,
				    "%s is a command of the shell: iodeck %s "
				    "...",
				    command->name, command->name);
	if (command_check(command, argc - used, argv + used, outcome))
		return 0;
	command->run(deck, command, argc - used, argv + used, outcome);
	cmd_record(deck, command, argc, argv, outcome);
	return 0;
}

int deck_do(struct deck *deck, const char *line, struct outcome *outcome)
{
	char **argv;
	struct err err;
	int argc, r;

	memset(outcome, 0, sizeof(*outcome));
	if (command_split(line, &argc, &argv, &err))
		return outcome_fail(outcome, 2, "%s", err.text);
	r = argc ? do_argv(deck, argc, argv, CMD_PROMPT, outcome) : 0;
	command_split_free(argv);
	return r;
}

bool deck_outcome_take(struct deck *deck, struct outcome *outcome)
{
	struct pending **at = &deck->pending, *p;

	while (*at && (!(*at)->done || (*at)->waits))
		at = &(*at)->next;
	p = *at;
	if (!p)
		return false;
	*at = p->next;
	*outcome = p->outcome;
	memset(&p->outcome, 0, sizeof(p->outcome));
	pending_free(p);
	return true;
}

/* Sleeps until there is something to do, at most until `until_us`. */
void deck_wait(struct deck *deck, int64_t until_us)
{
	struct pollfd pfd = { .fd = deck->epfd, .events = POLLIN };
	int ms = deck_timeout_ms(deck);
	int64_t left = (until_us - deck_clock()) / 1000 + 1;

	if (until_us != INT64_MAX && (ms < 0 || left < ms))
		ms = left < 0 ? 0 : (int)left;
	poll(&pfd, 1, ms);
}

int deck_do_wait(struct deck *deck, int argc, char *const argv[],
		 int timeout_ms, struct outcome *outcome)
{
	int64_t until = timeout_ms < 0
				? INT64_MAX
				: deck_clock() + (int64_t)timeout_ms * 1000;

	do_argv(deck, argc, argv, 0, outcome);
	if (!outcome->pending)
		return 0;
	outcome_free(outcome);
	while (!deck_outcome_take(deck, outcome)) {
		if (deck_clock() >= until)
			return outcome_fail(outcome, 1, "no answer within %d s",
					    timeout_ms / 1000);
		deck_wait(deck, until);
		deck_step(deck);
	}
	return 0;
}

char **deck_complete(struct deck *deck, const char *line)
{
	return complete_line(deck, line);
}

void deck_words_free(char **words)
{
	size_t i;

	for (i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
