/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Events as text and back. Everything here reads what others wrote: lines are
 * bounded in length and depth before jansson sees them, and an event without
 * a whole envelope does not come through.
 */
#include "backend/event.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/event_fast.h"

/* What tests make of the clock. */
static struct {
	int64_t set_us, ahead_us;
	double gain;
} other_clock;

static int64_t clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t event_now_us(void)
{
	int64_t now = clock_us();

	if (!other_clock.set_us)
		return now;
	return now + other_clock.ahead_us +
	       (int64_t)((double)(now - other_clock.set_us) * other_clock.gain);
}

void event_clock_set(int64_t ahead_us, double gain_ppm)
{
	other_clock.set_us = clock_us();
	other_clock.ahead_us = ahead_us;
	other_clock.gain = gain_ppm / 1e6;
}

/* ---- envelope ----------------------------------------------------------- */

static int head_text(const json_t *event, const char *key, size_t max,
		     const char **out, struct err *err)
{
	const char *s = json_string_value(json_object_get(event, key));

	if (!s || !*s || strlen(s) > max)
		return err_set(err, -EINVAL,
			       "event: \"%s\" must be text of 1 to %zu bytes",
			       key, max);
	*out = s;
	return 0;
}

static int head_int(const json_t *event, const char *key, int64_t min,
		    int64_t max, int64_t *out, struct err *err)
{
	const json_t *j = json_object_get(event, key);

	if (!json_is_integer(j) || json_integer_value(j) < min ||
	    json_integer_value(j) > max)
		return err_set(err, -EINVAL,
			       "event: \"%s\" must be a whole number from "
			       "%lld to %lld",
			       key, (long long)min, (long long)max);
	*out = json_integer_value(j);
	return 0;
}

int event_head(const json_t *event, struct event_head *head, struct err *err)
{
	int rc;

	if (!json_is_object(event))
		return err_set(err, -EINVAL, "event: is no JSON object");
	rc = head_text(event, "e", 31, &head->e, err);
	if (!rc)
		rc = head_text(event, "a", 63, &head->a, err);
	if (!rc)
		rc = head_int(event, "i", 0, INT64_MAX, &head->i, err);
	if (!rc)
		rc = head_int(event, "n", 1, INT64_MAX, &head->n, err);
	if (!rc)
		rc = head_int(event, "t", 0, EVENT_INT_MAX, &head->t_us, err);
	return rc;
}

int event_stamp(struct event_stamp *stamp, const char *e, int64_t t_us,
		json_t *body)
{
	id_assert(json_is_object(body));
	if (json_object_set_new(body, "e", json_string(e)) ||
	    json_object_set_new(body, "a", json_string(stamp->a)) ||
	    json_object_set_new(body, "i", json_integer(stamp->i)) ||
	    json_object_set_new(body, "n", json_integer(stamp->n + 1)) ||
	    json_object_set_new(body, "t", json_integer(t_us)))
		return -ENOMEM;
	stamp->n++;
	return 0;
}

/* ---- lines -------------------------------------------------------------- */

int event_encode(const json_t *event, char **line, size_t *len)
{
	char *text, *more;
	size_t n;

	if (!json_is_object(event))
		return -EINVAL;
	/* 15 digits hold every decimal that people type; 17 print 0.7 as
	 * 0.69999999999999996. */
	text = json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(15));
	if (!text)
		return -ENOMEM;
	n = strlen(text);
	if (n + 1 > EVENT_LINE_MAX) {
		free(text);
		return -EMSGSIZE;
	}
	more = realloc(text, n + 2);
	if (!more) {
		free(text);
		return -ENOMEM;
	}
	more[n] = '\n';
	more[n + 1] = '\0';
	*line = more;
	*len = n + 1;
	return 0;
}

/* Deepest nesting of brackets outside of strings; stops above `max`. */
static int line_depth(const char *line, size_t len, int max)
{
	bool in_text = false;
	int depth = 0, deepest = 0;

	for (size_t i = 0; i < len && deepest <= max; i++) {
		char c = line[i];

		if (in_text) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_text = false;
		} else if (c == '"') {
			in_text = true;
		} else if (c == '{' || c == '[') {
			if (++depth > deepest)
				deepest = depth;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return deepest;
}

int event_line_decode(const char *line, size_t len, json_t **json,
		      struct err *err)
{
	json_error_t je;

	if (len && line[len - 1] == '\n')
		len--;
	if (len + 1 > EVENT_LINE_MAX)
		return err_set(err, -EINVAL, "line of %zu bytes, at most %u",
			       len + 1, EVENT_LINE_MAX);
	*json = event_fast_decode(line, len);
	if (*json)
		return 0;
	if (memchr(line, '\n', len))
		return err_set(err, -EINVAL, "more than one line");
	if (line_depth(line, len, EVENT_DEPTH_MAX) > EVENT_DEPTH_MAX)
		return err_set(err, -EINVAL, "nested deeper than %d levels",
			       EVENT_DEPTH_MAX);
	*json = json_loadb(line, len, JSON_REJECT_DUPLICATES, &je);
	if (*json)
		return 0;
	if (json_error_code(&je) == json_error_out_of_memory)
		return err_set(err, -ENOMEM, "out of memory");
	/* jansson quotes the input: keep it printable. */
	event_text(je.text, sizeof(je.text), strdupa(je.text));
	return err_set(err, -EINVAL, "column %d: %s", je.column, je.text);
}

int event_decode(const char *line, size_t len, json_t **event, struct err *err)
{
	struct event_head head;
	struct err why = { 0 };
	json_t *j;
	int rc;

	rc = event_line_decode(line, len, &j, &why);
	if (rc)
		return err_set(err, rc, "event: %s", why.text);
	rc = event_head(j, &head, err);
	if (rc) {
		json_decref(j);
		return rc;
	}
	*event = j;
	return 0;
}

/* ---- text --------------------------------------------------------------- */

/* Length of the UTF-8 character at `s` and its code point; 0 for bytes that
 * are none (too long forms, halves of pairs and > U+10FFFF included). */
static size_t utf8_next(const unsigned char *s, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	if (s[0] >= 0xf0 && s[0] < 0xf8)
		n = 4;
	else if (s[0] >= 0xe0)
		n = 3;
	else if (s[0] >= 0xc0)
		n = 2;
	else
		return 0;
	if (s[0] >= 0xf8)
		return 0;
	*cp = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff ||
	    (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return n;
}

static bool is_control(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) ||
	       (cp >= 0x200e && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

void event_text(char *out, size_t size, const char *in)
{
	const unsigned char *s = (const unsigned char *)(in ? in : "");
	size_t o = 0, n;
	uint32_t cp;

	id_assert(size > 0);
	for (; *s; s += n) {
		n = utf8_next(s, &cp);
		if (!n) {
			n = 1;
			continue;
		}
		if (cp == '\t' || cp == '\n') {
			if (o + 1 >= size)
				break;
			out[o++] = ' ';
			continue;
		}
		if (is_control(cp))
			continue;
		if (o + n >= size)
			break;
		memcpy(out + o, s, n);
		o += n;
	}
	out[o] = '\0';
}

/* ---- histograms --------------------------------------------------------- */

static json_t *int_clip(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

json_t *event_hist_encode(const struct hist *h)
{
	json_t *j = json_object(), *b = json_array();
	unsigned last = 0;
	bool bad = !j || !b;

	for (unsigned i = 0; i < HIST_BUCKETS && !bad; i++) {
		if (!h->bucket[i])
			continue;
		bad = json_array_append_new(b, json_integer(i - last)) ||
		      json_array_append_new(b, int_clip(h->bucket[i]));
		last = i;
	}
	if (!bad)
		bad = json_object_set_new(j, "n", int_clip(h->count)) ||
		      json_object_set_new(j, "sum_ns", int_clip(h->sum_ns));
	if (!bad && h->count)
		bad = json_object_set_new(j, "min_ns", int_clip(h->min_ns)) ||
		      json_object_set_new(j, "max_ns", int_clip(h->max_ns));
	if (!bad && h->clipped)
		bad = json_object_set_new(j, "clipped", int_clip(h->clipped));
	if (!bad)
		bad = json_object_set(j, "b", b);
	json_decref(b);
	if (bad) {
		json_decref(j);
		return NULL;
	}
	return j;
}

struct hist_says {
	int64_t n, sum_ns, min_ns, max_ns, clipped;
};

static int hist_says(const json_t *j, struct hist_says *s, struct err *err)
{
	int rc;

	if (!json_is_object(j))
		return err_set(err, -EINVAL, "histogram: is no object");
	rc = head_int(j, "n", 0, EVENT_INT_MAX, &s->n, err);
	if (!rc)
		rc = head_int(j, "sum_ns", 0, INT64_MAX, &s->sum_ns, err);
	s->min_ns = s->max_ns = s->clipped = 0;
	if (!rc && s->n)
		rc = head_int(j, "min_ns", 0, INT64_MAX, &s->min_ns, err);
	if (!rc && s->n)
		rc = head_int(j, "max_ns", s->min_ns, INT64_MAX, &s->max_ns,
			      err);
	if (!rc && json_object_get(j, "clipped"))
		rc = head_int(j, "clipped", 0, s->n, &s->clipped, err);
	if (rc)
		return rc;
	if ((__int128)s->sum_ns < (__int128)s->n * s->min_ns ||
	    (__int128)s->sum_ns > (__int128)s->n * s->max_ns)
		return err_set(err, -EINVAL,
			       "histogram: sum_ns is not between n times the "
			       "least and n times the most");
	return 0;
}

/* Next pair of `b`; *index holds the bucket before (-1 at first). */
static int hist_pair(const json_t *b, size_t at, int64_t *index, int64_t *count)
{
	const json_t *d = json_array_get(b, at);
	const json_t *c = json_array_get(b, at + 1);
	int64_t step;

	if (!json_is_integer(d) || !json_is_integer(c))
		return -EINVAL;
	step = json_integer_value(d);
	*count = json_integer_value(c);
	if (step < (*index < 0 ? 0 : 1) || step >= HIST_BUCKETS || *count < 1 ||
	    *count > EVENT_INT_MAX)
		return -EINVAL;
	*index = (*index < 0 ? 0 : *index) + step;
	return *index < HIST_BUCKETS ? 0 : -EINVAL;
}

/* That the buckets are there, in order, add up to n, and begin and end where
 * min_ns and max_ns say. */
static int hist_check(const json_t *b, const struct hist_says *s,
		      struct err *err)
{
	int64_t index = -1, first = -1, count, sum = 0;
	size_t len = json_array_size(b);

	if (!json_is_array(b) || len % 2 || len > 2 * HIST_BUCKETS)
		return err_set(err, -EINVAL,
			       "histogram: b must be pairs of distance and "
			       "count, at most %u",
			       HIST_BUCKETS);
	for (size_t at = 0; at < len; at += 2) {
		if (hist_pair(b, at, &index, &count) || sum > s->n - count)
			return err_set(err, -EINVAL,
				       "histogram: pair %zu of b is out of "
				       "range",
				       at / 2);
		sum += count;
		if (first < 0)
			first = index;
	}
	if (sum != s->n)
		return err_set(err, -EINVAL,
			       "histogram: counts of b add up to %lld, n is "
			       "%lld",
			       (long long)sum, (long long)s->n);
	if (s->n && (first != hist_index((uint64_t)s->min_ns) ||
		     index != hist_index((uint64_t)s->max_ns)))
		return err_set(err, -EINVAL,
			       "histogram: min_ns and max_ns lie outside of "
			       "b's ends");
	return 0;
}

int event_hist_decode(const json_t *j, struct hist *h, struct err *err)
{
	struct hist_says s = { 0 };
	const json_t *b = json_object_get(j, "b");
	int64_t index = -1, count;
	uint64_t sum;
	int rc = hist_says(j, &s, err);

	if (!rc)
		rc = hist_check(b, &s, err);
	if (rc || !s.n)
		return rc;
	if (__builtin_add_overflow(h->sum_ns, (uint64_t)s.sum_ns, &sum) ||
	    h->count > INT64_MAX - (uint64_t)s.n)
		return err_set(err, -EINVAL, "histogram: sums overflow");
	for (size_t at = 0; at < json_array_size(b); at += 2) {
		rc = hist_pair(b, at, &index, &count);
		id_assert(!rc);
		h->bucket[index] += (uint64_t)count;
	}
	h->count += (uint64_t)s.n;
	h->sum_ns = sum;
	h->clipped += (uint64_t)s.clipped;
	if ((uint64_t)s.min_ns < h->min_ns)
		h->min_ns = (uint64_t)s.min_ns;
	if ((uint64_t)s.max_ns > h->max_ns)
		h->max_ns = (uint64_t)s.max_ns;
	return 0;
}
