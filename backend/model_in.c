/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members of an event, by name, with type and range checked. */
#include "backend/model_priv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int(in_bad)(struct m_in *in, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!in->rc)
		in->rc = err_set(in->err, -EINVAL, "event: %s", text);
	return in->rc;
}

struct m_in in_part(struct m_in *in, const json_t *o)
{
	struct m_in part = { .o = o, .err = in->err, .rc = in->rc };

	if (!json_is_object(o))
		in_bad(&part, "a member of a list is no object");
	return part;
}

/* NULL when absent, which is an error when it must be there. */
static const json_t *in_get(struct m_in *in, const char *key, enum in_must must)
{
	const json_t *j;

	if (in->rc)
		return NULL;
	j = json_object_get(in->o, key);
	if (j && !json_is_null(j))
		return j;
	if (must == IN_MUST)
		in_bad(in, "\"%s\" is missing", key);
	return NULL;
}

void in_text(struct m_in *in, const char *key, char *out, size_t size,
	     enum in_must must)
{
	const json_t *j = in_get(in, key, must);

	*out = '\0';
	if (!j)
		return;
	if (!json_is_string(j)) {
		in_bad(in, "\"%s\" must be text", key);
		return;
	}
	event_text(out, size, json_string_value(j));
	if (must == IN_MUST && !*out)
		in_bad(in, "\"%s\" is empty", key);
}

int64_t in_int(struct m_in *in, const char *key, int64_t max, enum in_must must)
{
	const json_t *j = in_get(in, key, must);

	if (!j)
		return -1;
	/* -1 is how some say unknown. */
	if (!json_is_integer(j) || json_integer_value(j) < -1 ||
	    json_integer_value(j) > max) {
		in_bad(in, "\"%s\" must be a whole number from 0 to %lld", key,
		       (long long)max);
		return -1;
	}
	return json_integer_value(j);
}

double in_num(struct m_in *in, const char *key)
{
	const json_t *j = in_get(in, key, IN_MAY);
	double v;

	if (!j)
		return NAN;
	v = json_number_value(j);
	if (!json_is_number(j) || !(v >= 0) || v > 1e18) {
		in_bad(in, "\"%s\" must be a number from 0 to 1e18", key);
		return NAN;
	}
	return v;
}

bool in_bool(struct m_in *in, const char *key)
{
	const json_t *j = in_get(in, key, IN_MAY);

	if (j && !json_is_boolean(j))
		in_bad(in, "\"%s\" must be true or false", key);
	return json_is_true(j);
}

const json_t *in_object(struct m_in *in, const char *key, enum in_must must)
{
	const json_t *j = in_get(in, key, must);

	if (!j || json_is_object(j))
		return j;
	in_bad(in, "\"%s\" must be an object", key);
	return NULL;
}

const json_t *in_array(struct m_in *in, const char *key, size_t max,
		       enum in_must must)
{
	const json_t *j = in_get(in, key, must);

	if (!j)
		return NULL;
	if (!json_is_array(j) || json_array_size(j) > max) {
		in_bad(in, "\"%s\" must be a list of at most %zu", key, max);
		return NULL;
	}
	return j;
}
