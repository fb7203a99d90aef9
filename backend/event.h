/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The event's envelope and its histograms. README.md lists the types;
 * iodeck-session(5) is their reference.
 */
#ifndef BACKEND_EVENT_H
#define BACKEND_EVENT_H

#include <jansson.h>

#include "engine/hist.h"

#define EVENT_LINE_MAX (1u << 20) /* bytes, newline included */
#define EVENT_DEPTH_MAX 12
/* Largest time and count an event may say: exact in a double, and sums of
 * a few of them fit an int64_t. */
#define EVENT_INT_MAX ((int64_t)1 << 53)

struct event_head {
	const char *e, *a; /* borrowed from the event */
	int64_t i, n, t_us;
};

/* -EINVAL when one of e, a, i, n, t is missing or of a wrong type. */
int event_head(const json_t *event, struct event_head *head, struct err *err);

/* Who stamps: a writer of events has one. */
struct event_stamp {
	char a[64];
	int64_t i, n; /* n: the last given out */
};
/* Adds e, a, i, n, t to `body` (object, borrowed and changed); 0 or -ENOMEM. */
int event_stamp(struct event_stamp *stamp, const char *e, int64_t t_us,
		json_t *body);

/*
 * One line, with its newline; *line is the caller's to free(). Control
 * characters are escaped, as JSON wants. -EMSGSIZE when it would be longer
 * than EVENT_LINE_MAX; -EINVAL for what is no object; -ENOMEM.
 */
int event_encode(const json_t *event, char **line, size_t *len);
/*
 * Parses one line (newline optional) of any JSON from outside, after checking
 * its length and depth. *json is the caller's to json_decref().
 */
int event_line_decode(const char *line, size_t len, json_t **json,
		      struct err *err);
/*
 * The same for an event: checks its envelope too.
 * *event is the caller's to json_decref(). err gets the place in the line.
 */
int event_decode(const char *line, size_t len, json_t **event, struct err *err);

/*
 * Copies text from outside, cut to whole characters that fit `size`: what is
 * not UTF-8 and control characters (C0, DEL, C1, and those that turn the
 * direction of writing) are left out; tabs and line ends become a space.
 * NULL is copied as "".
 */
void event_text(char *out, size_t size, const char *in);

/* New reference, or NULL for lack of memory. */
json_t *event_hist_encode(const struct hist *h);
/* Adds to `h` (so reset it first). -EINVAL for negative counts, an index out
 * of range, sums that cannot be; `h` is then as it was. */
int event_hist_decode(const json_t *j, struct hist *h, struct err *err);

/* Wall clock, microseconds since the Unix epoch. */
int64_t event_now_us(void);
/* Another one, for tests: so far ahead, and gaining so much from now on. Before
 * there are threads. */
void event_clock_set(int64_t ahead_us, double gain_ppm);

#endif
