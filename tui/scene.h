/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What screens see: the model, the deck's status, the library of workloads,
 * suites and sessions, and the time it is. Nothing else, so the same scene
 * draws the same screen.
 */
#ifndef TUI_SCENE_H
#define TUI_SCENE_H

#include "backend/analysis/analysis.h"
#include "backend/deck.h"
#include "backend/model.h"

struct lib_workload {
	char name[MODEL_NAME], title[MODEL_NAME], path[MODEL_TEXT];
	double read_share, random_share; /* NAN unknown */
	char sizes[MODEL_NAME];          /* "32 KiB", "8-64 KiB" */
	char text[4 * MODEL_TEXT];       /* more lines about it, or "" */
};
struct lib_suite {
	char name[MODEL_NAME], title[MODEL_NAME];
};
struct lib_session {
	char name[MODEL_NAME], path[256], title[MODEL_NAME];
	int64_t from_us, to_us, bytes; /* -1 unknown */
	char what[MODEL_TEXT];
	/* once read whole (verdict.h); "" before */
	char where[MODEL_NAME], verdict[16];
	double peak_iops; /* of its best series; NAN none */
};
struct library {
	struct lib_workload *workload;
	size_t workloads;
	struct lib_suite *suite;
	size_t suites;
	struct lib_session *session;
	size_t sessions;
};

struct scene {
	const struct model *model;
	const struct deck_status *status;
	const struct deck_overlay *overlay;
	size_t overlays;
	const struct library *library;
	int64_t now_us;
};

#endif
