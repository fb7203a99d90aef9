/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A session under a virtual clock. `at_us` is how far the model has been
 * folded, `target_us` how far it should be; a step closes the gap, some
 * milliseconds at a time, so that a seek through a long session never holds
 * the screen. Backward is from the start: a model cannot be unfolded.
 */
#include "backend/deck_impl.h"

#include <stdlib.h>
#include <string.h>

#include "backend/paths.h"

#define STEP_US 15000 /* of work in one step */
#define SPEED_MIN 0.25
#define SPEED_MAX 64.0

static int64_t event_t_us(const json_t *event)
{
	return json_integer_value(json_object_get(event, "t"));
}

/* Sees to next_event; false at the end. */
static bool next_read(struct deck *deck)
{
	int r = -EBADMSG;

	if (deck->next_event)
		return true;
	while (r == -EBADMSG)
		r = session_next(deck->reader, &deck->next_event, NULL);
	if (r)
		deck->next_event = NULL;
	return !r;
}

static void next_apply(struct deck *deck)
{
	int64_t t = event_t_us(deck->next_event);

	model_apply(deck->model, deck->next_event, NULL);
	json_decref(deck->next_event);
	deck->next_event = NULL;
	deck->applied++;
	deck->folded++;
	if (t > deck->at_us)
		deck->at_us = t;
}

int replay_open(struct deck *deck, const char *path, struct err *err)
{
	struct session_reader *reader;
	struct model *model;
	uint64_t torn = 0;
	char full[PATH_MAX];
	int r;

	if (path_expand(path, full, sizeof(full)))
		return err_set(err, -ENAMETOOLONG, "%s: name too long", path);
	r = session_open(full, &reader, &torn, err);
	if (r)
		return r;
	if (model_new(&model)) {
		session_reader_free(reader);
		return err_set(err, -ENOMEM, "out of memory");
	}
	replay_close(deck);
	live_close(deck);
	model_free(deck->model);
	deck->model = model;
	deck->reader = reader;
	snprintf(deck->session_path, sizeof(deck->session_path), "%s", full);
	deck->replay_text[0] = '\0';
	if (torn)
		snprintf(deck->replay_text, sizeof(deck->replay_text),
			 "the last %llu bytes of the file were torn and are "
			 "left out",
			 (unsigned long long)torn);
	if (session_span(reader, &deck->from_us, &deck->to_us))
		deck->from_us = deck->to_us = 0;
	deck->at_us = deck->target_us = deck->from_us;
	deck->speed = 1.0;
	deck->playing = false;
	deck->steps = deck->folded = 0;
	deck->clock_us = deck_clock();
	return 0;
}

void replay_close(struct deck *deck)
{
	if (!deck->reader)
		return;
	json_decref(deck->next_event);
	deck->next_event = NULL;
	session_reader_free(deck->reader);
	deck->reader = NULL;
	deck->playing = false;
}

void replay_play(struct deck *deck, bool play)
{
	deck->clock_us = deck_clock();
	if (play && deck->at_us >= deck->to_us)
		replay_seek(deck, 0);
	deck->stepped = false;
	deck->playing = play;
}

int replay_speed(struct deck *deck, double speed, struct err *err)
{
	if (!(speed >= SPEED_MIN && speed <= SPEED_MAX))
		return err_set(err, -EINVAL, "speed: expected %g to %g",
			       SPEED_MIN, SPEED_MAX);
	deck->speed = speed;
	return 0;
}

/* An empty model before the first event; the old one where memory lacks. */
static int rewind_all(struct deck *deck)
{
	struct model *model;

	if (model_new(&model))
		return -ENOMEM;
	model_free(deck->model);
	deck->model = model;
	session_rewind(deck->reader);
	json_decref(deck->next_event);
	deck->next_event = NULL;
	deck->at_us = deck->from_us;
	deck->folded = 0;
	return 0;
}

void replay_seek(struct deck *deck, int64_t at_us)
{
	int64_t to = deck->from_us + (at_us > 0 ? at_us : 0);

	if (to > deck->to_us)
		to = deck->to_us;
	deck->steps = 0;
	deck->stepped = false;
	deck->target_us = to;
	if (to < deck->at_us)
		rewind_all(deck);
}

void replay_steps(struct deck *deck, int steps)
{
	deck->playing = false;
	deck->stepped = true;
	deck->steps += steps;
	if (steps >= 0)
		return;
	/* Back is forward again from the start, that much less far. */
	deck->steps += deck->folded;
	if (deck->steps < 0)
		deck->steps = 0;
	deck->target_us = deck->from_us;
	rewind_all(deck);
}

/* The clock moves the target while playing. */
static void replay_clock(struct deck *deck)
{
	int64_t now = deck_clock(), passed = now - deck->clock_us;

	deck->clock_us = now;
	if (!deck->playing)
		return;
	deck->target_us += (int64_t)((double)passed * deck->speed);
	if (deck->target_us >= deck->to_us) {
		deck->target_us = deck->to_us;
		deck->playing = false;
	}
}

static bool due(struct deck *deck)
{
	if (!next_read(deck))
		return false;
	if (deck->steps > 0) {
		deck->steps--;
		return true;
	}
	/* A step takes one event, not all of its microsecond. */
	return event_t_us(deck->next_event) <
	       deck->target_us + (deck->stepped ? 0 : 1);
}

void replay_step(struct deck *deck)
{
	int64_t until = deck_clock() + STEP_US;

	replay_clock(deck);
	while (due(deck)) {
		next_apply(deck);
		if ((deck->applied & 15) == 0 && deck_clock() >= until)
			return;
	}
	deck->steps = 0;
	if (deck->at_us > deck->target_us)
		deck->target_us = deck->at_us;
	else
		deck->at_us = deck->target_us;
}

int replay_timeout_ms(const struct deck *deck)
{
	if (deck->steps || deck->at_us < deck->target_us)
		return 0;
	return deck->playing ? 50 : -1;
}
