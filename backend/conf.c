/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/conf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/units.h"

int(conf_bad)(const config_setting_t *at, struct err *err, const char *fmt, ...)
{
	const char *file = config_setting_source_file(at);
	unsigned line = (unsigned)config_setting_source_line(at);
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, -EINVAL, "%s:%u: %s", file ? file : "configuration",
		       line ? line : 1, what);
}

int conf_read(const char *path, config_t *file, struct err *err)
{
	FILE *f = fopen(path, "re");
	int r = 0;

	if (!f)
		return err_set(err, -errno, "cannot read %s: %s", path,
			       strerror(errno));
	fclose(f);
	config_init(file);
	if (!config_read_file(file, path)) {
		const char *at = config_error_file(file);

		r = err_set(err, -EINVAL,
			    "%s:%d: %s: expected name = value;, with texts "
			    "in quotes and groups in { }",
			    at ? at : path, config_error_line(file),
			    config_error_text(file));
		config_destroy(file);
	}
	return r;
}

/* ---- numbers ------------------------------------------------------------ */

static const struct {
	int (*parse)(const char *text, double *value);
	double scale;
	const char *want;
} numbers[] = {
	[CONF_NUMBER] = { units_number, 1, "a number" },
	[CONF_INT] = { units_number, 1, "a whole number" },
	[CONF_BYTES] = { units_bytes, 1, "a size such as 4096 or \"32K\"" },
	[CONF_RATE] = { units_rate, 1,
			"a rate such as \"150MB\" or \"25Gbit\"" },
	[CONF_US] = { units_seconds, 1e6, "a time such as 2.5 or \"5m\"" },
};

static double plain_number(const config_setting_t *s)
{
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
		return config_setting_get_int(s);
	case CONFIG_TYPE_INT64:
		return (double)config_setting_get_int64(s);
	case CONFIG_TYPE_FLOAT:
		return config_setting_get_float(s);
	default:
		return NAN;
	}
}

static int get_number(const config_setting_t *s, enum conf_kind kind,
		      const struct conf_member *m, double *value,
		      struct err *err)
{
	double v = plain_number(s), min = m->min, max = m->max;
	bool text = config_setting_type(s) == CONFIG_TYPE_STRING &&
		    kind != CONF_NUMBER && kind != CONF_INT;

	if (text && numbers[kind].parse(config_setting_get_string(s), &v))
		v = NAN;
	if (isnan(v) || (kind == CONF_INT && v != floor(v)) || v < 0)
		return conf_bad(s, err, "%s: expected %s", m->name,
				numbers[kind].want);
	if (max > 0 && !(v >= min && v <= max))
		return conf_bad(s, err, "%s: expected %g to %g", m->name, min,
				max);
	*value = v * numbers[kind].scale;
	return 0;
}

static json_t *number_json(enum conf_kind kind, double value)
{
	if (kind == CONF_NUMBER)
		return json_real(value);
	return json_integer((json_int_t)llround(value));
}

/* ---- lists -------------------------------------------------------------- */

static bool is_list(const config_setting_t *s)
{
	return config_setting_is_array(s) || config_setting_is_list(s);
}

static int get_numbers(const config_setting_t *s, const struct conf_member *m,
		       json_t *list, struct err *err)
{
	int i, n = is_list(s) ? config_setting_length(s) : 1, r;
	double v;

	for (i = 0; i < n; i++) {
		r = get_number(is_list(s)
				       ? config_setting_get_elem(s, (unsigned)i)
				       : s,
			       CONF_NUMBER, m, &v, err);
		if (r)
			return r;
		json_array_append_new(list, json_real(v));
	}
	return n ? 0 : conf_bad(s, err, "%s: expected numbers", m->name);
}

static int get_texts(const config_setting_t *s, const struct conf_member *m,
		     json_t *list, struct err *err)
{
	int i, n = is_list(s) ? config_setting_length(s) : 1;
	const config_setting_t *e;

	for (i = 0; i < n; i++) {
		e = is_list(s) ? config_setting_get_elem(s, (unsigned)i) : s;
		if (config_setting_type(e) != CONFIG_TYPE_STRING)
			return conf_bad(e, err, "%s: expected texts in quotes",
					m->name);
		json_array_append_new(
			list, json_string(config_setting_get_string(e)));
	}
	return 0;
}

static int get_size(const config_setting_t *s, const config_setting_t *weight,
		    const struct conf_member *m, json_t *list, struct err *err)
{
	struct conf_member limits = { .name = m->name,
				      .min = 512,
				      .max = 8 << 20 };
	double bytes, share = 1.0;
	int r;

	r = get_number(s, CONF_BYTES, &limits, &bytes, err);
	if (!r && fmod(bytes, 512) != 0)
		r = conf_bad(s, err, "%s: expected a multiple of 512 bytes",
			     m->name);
	limits.min = 0;
	limits.max = 1e6;
	if (!r && weight)
		r = get_number(weight, CONF_NUMBER, &limits, &share, err);
	if (!r)
		json_array_append_new(
			list, json_pack("[I,f]", (json_int_t)bytes, share));
	return r;
}

static int get_sizes(const config_setting_t *s, const struct conf_member *m,
		     json_t *list, struct err *err)
{
	const config_setting_t *pair;
	int i, r = 0;

	if (!is_list(s))
		return get_size(s, NULL, m, list, err);
	for (i = 0; !r && i < config_setting_length(s); i++) {
		pair = config_setting_get_elem(s, (unsigned)i);
		if (!is_list(pair) || config_setting_length(pair) != 2)
			r = conf_bad(s, err,
				     "%s: expected ( (size, weight), ... )",
				     m->name);
		else
			r = get_size(config_setting_get_elem(pair, 0),
				     config_setting_get_elem(pair, 1), m, list,
				     err);
	}
	if (!r && !json_array_size(list))
		r = conf_bad(s, err, "%s: expected at least one size", m->name);
	return r;
}

static int get_list(const config_setting_t *s, const struct conf_member *m,
		    json_t *list, struct err *err)
{
	json_t *object;
	int i, r = 0;

	if (!config_setting_is_list(s))
		return conf_bad(s, err, "%s: expected ( { ... }, ... )",
				m->name);
	for (i = 0; !r && i < config_setting_length(s); i++) {
		r = conf_object(config_setting_get_elem(s, (unsigned)i),
				m->members, &object, err);
		if (!r)
			json_array_append_new(list, object);
	}
	return r;
}

/* ---- a member, a group -------------------------------------------------- */

static int get_scalar(const config_setting_t *s, const struct conf_member *m,
		      json_t **value, struct err *err)
{
	double number;
	int r;

	switch (m->kind) {
	case CONF_TEXT:
		if (config_setting_type(s) != CONFIG_TYPE_STRING)
			return conf_bad(s, err, "%s: expected a text in quotes",
					m->name);
		*value = json_string(config_setting_get_string(s));
		return *value ? 0
			      : conf_bad(s, err, "%s: expected UTF-8 text",
					 m->name);
	case CONF_BOOL:
		if (config_setting_type(s) != CONFIG_TYPE_BOOL)
			return conf_bad(s, err, "%s: expected true or false",
					m->name);
		*value = json_boolean(config_setting_get_bool(s));
		return 0;
	default:
		r = get_number(s, m->kind, m, &number, err);
		if (!r)
			*value = number_json(m->kind, number);
		return r;
	}
}

static int get_member(const config_setting_t *s, const struct conf_member *m,
		      json_t **value, struct err *err)
{
	int r;

	if (m->kind == CONF_GROUP)
		return conf_object(s, m->members, value, err);
	if (m->kind < CONF_NUMBERS)
		return get_scalar(s, m, value, err);
	*value = json_array();
	if (m->kind == CONF_NUMBERS)
		r = get_numbers(s, m, *value, err);
	else if (m->kind == CONF_TEXTS)
		r = get_texts(s, m, *value, err);
	else if (m->kind == CONF_SIZES)
		r = get_sizes(s, m, *value, err);
	else
		r = get_list(s, m, *value, err);
	if (r)
		json_decref(*value);
	return r;
}

static const struct conf_member *find(const struct conf_member *m,
				      const char *name)
{
	for (; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

static int bad_name(const config_setting_t *s, const struct conf_member *m,
		    struct err *err)
{
	char names[256];
	size_t n = 0;

	for (names[0] = '\0'; m->name && n < sizeof(names) - 1; m++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
				      n ? ", " : "", m->name);
	return conf_bad(s, err, "unknown setting \"%s\": expected %s",
			config_setting_name(s), names);
}

int conf_object(const config_setting_t *group,
		const struct conf_member *members, json_t **object,
		struct err *err)
{
	const struct conf_member *m;
	config_setting_t *s;
	json_t *out, *value;
	int i, r = 0;

	if (!config_setting_is_group(group))
		return conf_bad(group, err, "expected a group in { }");
	out = json_object();
	for (i = 0; !r && i < config_setting_length(group); i++) {
		s = config_setting_get_elem(group, (unsigned)i);
		m = find(members, config_setting_name(s));
		if (!m) {
			r = bad_name(s, members, err);
			break;
		}
		r = get_member(s, m, &value, err);
		if (!r)
			json_object_set_new(out, m->json ? m->json : m->name,
					    value);
	}
	for (m = members; !r && m->name; m++)
		if (m->need && !config_setting_get_member(group, m->name))
			r = conf_bad(group, err, "expected %s here", m->name);
	if (r)
		json_decref(out);
	else
		*object = out;
	return r;
}
