/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fake_deck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "synth.h"

struct deck {
	struct model *model;
	json_t *events;
	size_t at;
	int timer_fd;
	char lines[4096];
};

static int keep(const json_t *event, void *arg)
{
	struct deck *d = arg;

	return json_array_append_new(d->events, json_deep_copy(event));
}

static void apply(struct deck *d)
{
	struct err err;

	if (d->at < json_array_size(d->events))
		model_apply(d->model, json_array_get(d->events, d->at++), &err);
}

int fake_deck_open(const struct fake_deck_opts *opts, struct deck **deck)
{
	struct deck *d = calloc(1, sizeof(*d));
	struct itimerspec every = { 0 };
	struct synth_opts synth;

	if (!d || model_new(&d->model))
		return -ENOMEM;
	synth_defaults(&synth);
	d->events = json_array();
	synth_session(&synth, keep, d);
	for (int i = 0; i < opts->begin; i++)
		apply(d);
	every.it_interval.tv_nsec = every.it_value.tv_nsec =
		opts->every_ms * 1000000l;
	d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	timerfd_settime(d->timer_fd, 0, &every, NULL);
	*deck = d;
	return 0;
}

void deck_close(struct deck *d)
{
	model_free(d->model);
	json_decref(d->events);
	close(d->timer_fd);
	free(d);
}

const char *fake_deck_lines(const struct deck *d)
{
	return d->lines;
}

int deck_fd(const struct deck *d)
{
	return d->timer_fd;
}

int deck_timeout_ms(const struct deck *d)
{
	(void)d;
	return -1;
}

unsigned deck_step(struct deck *d)
{
	uint64_t ticks = 0;

	if (read(d->timer_fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		return 0;
	apply(d);
	return 1;
}

const struct model *deck_model(const struct deck *d)
{
	return d->model;
}

size_t deck_overlays(const struct deck *d, const struct deck_overlay **overlay)
{
	(void)d;
	*overlay = NULL;
	return 0;
}

void deck_status(const struct deck *d, struct deck_status *status)
{
	memset(status, 0, sizeof(*status));
	status->link = LINK_REPLAY;
	status->playing = true;
	status->speed = 1;
	status->from_us = d->model->first_t_us;
	status->to_us = status->from_us + 285000000;
	status->at_us = d->model->t_us;
}

int deck_do(struct deck *d, const char *line, struct outcome *outcome)
{
	size_t n = strlen(d->lines);

	memset(outcome, 0, sizeof(*outcome));
	snprintf(d->lines + n, sizeof(d->lines) - n, "%s\n", line);
	return 0;
}

bool deck_outcome_take(struct deck *d, struct outcome *outcome)
{
	(void)d;
	(void)outcome;
	return false;
}

void outcome_free(struct outcome *outcome)
{
	free(outcome->text);
	json_decref(outcome->json);
}

char **deck_complete(struct deck *d, const char *line)
{
	char **words = calloc(3, sizeof(*words));

	(void)d;
	(void)line;
	words[0] = strdup("vdisk");
	words[1] = strdup("verify");
	return words;
}

void deck_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
