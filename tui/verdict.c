/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/session/session.h"

/* A file only grows: one of the same length is the same. */
struct kept {
	char path[256];
	int64_t bytes;
	char where[MODEL_NAME], verdict[16];
	double peak_iops;
};

struct verdicts {
	struct kept *kept;
	size_t count, cap;
	/* being read */
	struct kept now;
	struct session_reader *reader;
	struct model *model;
	uint64_t torn;
};

int verdicts_new(struct verdicts **v)
{
	*v = calloc(1, sizeof(**v));
	return *v ? 0 : -ENOMEM;
}

static void job_drop(struct verdicts *v)
{
	session_reader_free(v->reader);
	model_free(v->model);
	v->reader = NULL;
	v->model = NULL;
}

void verdicts_free(struct verdicts *v)
{
	if (!v)
		return;
	job_drop(v);
	free(v->kept);
	free(v);
}

static const struct kept *kept_find(const struct verdicts *v,
				    const struct lib_session *s)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->kept[i].bytes == s->bytes &&
		    !strcmp(v->kept[i].path, s->path))
			return &v->kept[i];
	return NULL;
}

static void kept_add(struct verdicts *v)
{
	struct kept *more;

	/* A file that grew takes the place of what it was. */
	for (size_t i = 0; i < v->count; i++)
		if (!strcmp(v->kept[i].path, v->now.path)) {
			v->kept[i] = v->now;
			return;
		}
	if (v->count == v->cap) {
		more = realloc(v->kept, (v->cap + 32) * sizeof(*more));
		if (!more)
			return;
		v->kept = more;
		v->cap += 32;
	}
	v->kept[v->count++] = v->now;
}

static double run_peak(const struct m_run *run, double best)
{
	struct series_summary sum;
	struct curve curve;

	for (size_t i = 0; i < run->series_count; i++) {
		if (curve_of_series(&run->series[i], &curve))
			continue;
		curve_summary(&curve, 1000, &sum);
		curve_fini(&curve);
		best = fmax(best, sum.peak_iops);
	}
	return best;
}

static void job_judge(struct verdicts *v)
{
	const struct m_run *run = model_run(v->model);
	const char *word = "no run";

	if (run)
		word = run->state;
	/* It neither ended nor said why: killed, or it is still going on. */
	if (run && (!strcmp(word, "running") || !strcmp(word, "paused")))
		word = v->model->closed ? "left" : "open";
	if (v->torn)
		word = "torn";
	snprintf(v->now.verdict, sizeof(v->now.verdict), "%s", word);
	snprintf(v->now.where, sizeof(v->now.where), "%s", v->model->cluster);
	v->now.peak_iops = NAN;
	for (size_t i = 0; i < v->model->runs; i++)
		v->now.peak_iops =
			run_peak(&v->model->run[i], v->now.peak_iops);
}

static void job_begin(struct verdicts *v, const struct lib_session *s)
{
	struct err err;

	v->now = (struct kept) { .bytes = s->bytes, .peak_iops = NAN };
	snprintf(v->now.path, sizeof(v->now.path), "%s", s->path);
	v->torn = 0;
	if (!session_open(s->path, &v->reader, &v->torn, &err) &&
	    !model_new(&v->model))
		return;
	job_drop(v);
	snprintf(v->now.verdict, sizeof(v->now.verdict), "unreadable");
	kept_add(v);
}

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void job_step(struct verdicts *v, int64_t until_us)
{
	json_t *event;
	int rc;

	do {
		rc = session_next(v->reader, &event, NULL);
		if (!rc) {
			model_apply(v->model, event, NULL);
			json_decref(event);
		}
	} while ((!rc || rc == -EBADMSG) && now_us() < until_us);
	if (!rc || rc == -EBADMSG)
		return;
	job_judge(v);
	kept_add(v);
	job_drop(v);
}

/* Returns the newest of which nothing is known yet. */
static const struct lib_session *fill(const struct verdicts *v,
				      struct library *lib, bool *changed)
{
	const struct lib_session *next = NULL;

	for (size_t i = 0; i < lib->sessions; i++) {
		struct lib_session *s = &lib->session[i];
		const struct kept *k;

		if (*s->verdict)
			continue;
		k = kept_find(v, s);
		if (!k) {
			next = next ? next : s;
			continue;
		}
		memcpy(s->where, k->where, sizeof(s->where));
		memcpy(s->verdict, k->verdict, sizeof(s->verdict));
		s->peak_iops = k->peak_iops;
		*changed = true;
	}
	return next;
}

bool verdicts_step(struct verdicts *v, struct library *lib, int64_t budget_us,
		   bool *changed)
{
	const struct lib_session *next;

	*changed = false;
	next = fill(v, lib, changed);
	if (!next && !v->reader)
		return false;
	if (!v->reader)
		job_begin(v, next);
	if (v->reader)
		job_step(v, now_us() + budget_us);
	return fill(v, lib, changed) || v->reader;
}
