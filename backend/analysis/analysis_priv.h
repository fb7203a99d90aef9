/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the analysis share; formulas, for their tests. */
#ifndef BACKEND_ANALYSIS_ANALYSIS_PRIV_H
#define BACKEND_ANALYSIS_ANALYSIS_PRIV_H

#include "backend/analysis/analysis.h"

/* ---- stats.c ------------------------------------------------------------ */

/* Quantile 0.975 of Student's t; freedom >= 3. */
double stats_t975(unsigned freedom);
/* Half-width of the 95 % interval as a share of the mean; values weighted
 * within their batch. NAN for fewer than 6. */
double stats_batch_ci(const double *value, const double *weight, size_t n);
/* How far the line of least squares goes from the first to the last value, as
 * a share of the mean. */
double stats_trend(const double *value, size_t n);

/* NULL for NAN and infinite, as JSON wants. */
json_t *json_number(double v);

/* ---- text.c ------------------------------------------------------------- */

/* "186,204"; "-" unknown. */
const char *figure_count(double v, char *out, size_t size);
/* Three digits: "0.0912" "0.912" "9.12" "91.2" "912"; "-" unknown. */
const char *figure_three(double v, char *out, size_t size);

#endif
