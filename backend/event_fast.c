/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The JSON that events are made of, several times as fast as a general parser
 * takes it: no blanks, no escapes, ASCII, numbers of few digits.
 * A session of an hour has some eight million of them in its histograms.
 *
 * Whatever else comes, right or wrong, is left to jansson, which also writes
 * the sentence about what is wrong; so this has to be right about what it
 * takes, not complete. The fuzz target holds it against jansson.
 */
#include "backend/event_fast.h"

#include <string.h>

#include "backend/event.h"

struct in {
	const char *at, *end;
};

static json_t *value(struct in *in, int depth);

static bool next_is(struct in *in, char c)
{
	if (in->at == in->end || *in->at != c)
		return false;
	in->at++;
	return true;
}

/* The text between quotes, the first of which was read. */
static const char *plain_text(struct in *in, size_t *len)
{
	const char *from = in->at;

	for (; in->at < in->end && *in->at != '"'; in->at++)
		if (*in->at < 0x20 || *in->at > 0x7e || *in->at == '\\')
			return NULL;
	if (in->at == in->end)
		return NULL;
	*len = (size_t)(in->at++ - from);
	return from;
}

/* Up to `most` digits, added behind those of v. */
static int digits(struct in *in, int most, json_int_t *v)
{
	int n = 0;

	for (; in->at < in->end && *in->at >= '0' && *in->at <= '9' && n < most;
	     n++)
		*v = *v * 10 + (*in->at++ - '0');
	return n;
}

static json_t *number(struct in *in)
{
	/* Powers of ten that a double holds exactly, as it does whole numbers
	 * below 2^53: one division of the two is rounded as strtod() does. */
	static const double ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
				      1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
				      1e14, 1e15, 1e16, 1e17, 1e18 };
	const char *from = in->at;
	json_int_t v = 0;
	int whole = digits(in, 18, &v), part = 0;

	if (!whole || (*from == '0' && whole > 1))
		return NULL;
	if (next_is(in, '.')) {
		part = digits(in, 18 - whole, &v);
		if (!part || v >= EVENT_INT_MAX)
			return NULL;
	}
	/* No exponent or further digit. */
	if (in->at == in->end ||
	    (*in->at != ',' && *in->at != ']' && *in->at != '}'))
		return NULL;
	return part ? json_real((double)v / ten[part]) : json_integer(v);
}

static json_t *word(struct in *in, const char *w, json_t *j)
{
	size_t n = strlen(w);

	if ((size_t)(in->end - in->at) < n || memcmp(in->at, w, n)) {
		json_decref(j);
		return NULL;
	}
	in->at += n;
	return j;
}

static json_t *array(struct in *in, int depth)
{
	json_t *j = json_array();

	if (next_is(in, ']'))
		return j;
	do {
		/* Takes the reference also when it fails, NULL included. */
		if (json_array_append_new(j, value(in, depth))) {
			json_decref(j);
			return NULL;
		}
	} while (next_is(in, ','));
	if (next_is(in, ']'))
		return j;
	json_decref(j);
	return NULL;
}

static json_t *object(struct in *in, int depth)
{
	json_t *j = json_object();
	size_t len, members = 0;
	char key[64];

	if (next_is(in, '}'))
		return j;
	do {
		const char *k = next_is(in, '"') ? plain_text(in, &len) : NULL;

		if (!k || len >= sizeof(key) || !next_is(in, ':'))
			goto leave;
		memcpy(key, k, len);
		key[len] = '\0';
		if (json_object_set_new_nocheck(j, key, value(in, depth)))
			goto leave;
		/* A doubled member is for jansson to refuse. */
		if (json_object_size(j) != ++members)
			goto leave;
	} while (next_is(in, ','));
	if (next_is(in, '}'))
		return j;
leave:
	json_decref(j);
	return NULL;
}

static json_t *value(struct in *in, int depth)
{
	const char *text;
	size_t len;

	if (in->at == in->end || depth == EVENT_DEPTH_MAX)
		return NULL;
	switch (*in->at) {
	case '{':
		in->at++;
		return object(in, depth + 1);
	case '[':
		in->at++;
		return array(in, depth + 1);
	case '"':
		in->at++;
		text = plain_text(in, &len);
		return text ? json_stringn_nocheck(text, len) : NULL;
	case 't':
		return word(in, "true", json_true());
	case 'f':
		return word(in, "false", json_false());
	case 'n':
		return word(in, "null", json_null());
	default:
		return number(in);
	}
}

json_t *event_fast_decode(const char *line, size_t len)
{
	struct in in = { line, line + len };
	json_t *j;

	if (!next_is(&in, '{'))
		return NULL;
	j = object(&in, 1);
	if (j && in.at != in.end) {
		json_decref(j);
		return NULL;
	}
	return j;
}
