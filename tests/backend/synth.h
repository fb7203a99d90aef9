/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A believable session that no one ran: six fault domains, three vDisks, three
 * curves, a drive pulled during the last one. The same options give the same
 * bytes. For tests of what stands on events: model, replay, screens, analysis.
 */
#ifndef TESTS_BACKEND_SYNTH_H
#define TESTS_BACKEND_SYNTH_H

#include "backend/model.h"

struct synth_opts {
	uint64_t seed;
	int64_t begin_t_us;
	int series;     /* 1 to 3: RAID-1, RAID-5, RAID-6 */
	int points;     /* of a curve, ending at 100 % */
	int warm, secs; /* samples of one second a point, warm-up first */
	bool fault;     /* pull n4:d1 in the last series' last point but one,
			   then rebuild */
	bool close;     /* end in order */
	bool log;       /* the vDisks are of the log layout, with figures */
	/* Stop after so many events: 0 all. */
	int limit;
};

/* Three series of ten points of 2 + 6 s, with the fault, closed; begins at
 * 2026-03-02 08:40:00 UTC. */
void synth_defaults(struct synth_opts *opts);

/* Hands out each event; ends early when emit returns other than 0, which is
 * then returned. Events: synth_events(). */
int synth_session(const struct synth_opts *opts,
		  int (*emit)(const json_t *event, void *arg), void *arg);
/* How many events a session of these options has. */
int synth_events(const struct synth_opts *opts);
/* Folds it into a model. */
int synth_model(const struct synth_opts *opts, struct model *model);
/* Writes plain JSON lines. */
int synth_lines(const struct synth_opts *opts, const char *path);

/* What the series' points were made from, for comparing: the maximum, and the
 * mean service latency in microseconds at a share of it. */
double synth_max_iops(int series);
double synth_latency_us(int series, double share);

#endif
