/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/run/suite_impl.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/paths.h"
#include "backend/run/conductor.h"
#include "backend/units.h"

/* ---- what may stand in a suite ------------------------------------------ */

#define END                                              \
	{                                                \
		NULL, CONF_TEXT, NULL, false, 0, 0, NULL \
	}

static const struct conf_member series_members[] = {
	{ "name", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "vdisk", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "vdisks", CONF_TEXTS, NULL, false, 0, 0, NULL },
	{ "workload", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "setup", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "max_from", CONF_TEXT, NULL, false, 0, 0, NULL },
	END,
};

static const struct conf_member during_members[] = {
	{ "kind", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "at", CONF_US, "at_us", false, 0, 0, NULL },
	{ "at_share", CONF_NUMBER, NULL, false, 0, 1, NULL },
	{ "text", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "domain", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "drive", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "rate", CONF_RATE, "rate_bytes_s", false, 0, 0, NULL },
	{ "iops", CONF_NUMBER, "rate_iops", false, 0, 1e9, NULL },
	{ "latency_us", CONF_NUMBER, NULL, false, 0, 1e7, NULL },
	END,
};

/* Of all kinds; which kind takes which is in phase_kinds[]. */
static const struct conf_member phase_members[] = {
	{ "kind", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "series", CONF_TEXTS, NULL, false, 0, 0, NULL },
	{ "vdisk", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "state", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "seconds", CONF_US, "length_us", false, 0, 0, NULL },
	{ "warmup", CONF_US, "warmup_us", false, 0, 0, NULL },
	{ "step", CONF_US, "step_us", false, 0, 0, NULL },
	{ "mode", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "percent", CONF_NUMBERS, NULL, false, 0.1, 1000, NULL },
	{ "outstanding", CONF_NUMBERS, NULL, false, 1, 4096, NULL },
	{ "outstanding_min", CONF_INT, NULL, false, 1, 4096, NULL },
	{ "outstanding_max", CONF_INT, NULL, false, 1, 4096, NULL },
	{ "gain", CONF_NUMBER, NULL, false, 0.001, 1, NULL },
	{ "schedule", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "early_ci", CONF_NUMBER, NULL, false, 0, 1, NULL },
	{ "patterns", CONF_TEXTS, NULL, false, 0, 0, NULL },
	{ "sizes", CONF_SIZES, NULL, false, 0, 0, NULL },
	{ "during", CONF_LIST, NULL, false, 0, 0, during_members },
	{ "text", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "domain", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "drive", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "rate", CONF_RATE, "rate_bytes_s", false, 0, 0, NULL },
	{ "iops", CONF_NUMBER, "rate_iops", false, 0, 1e9, NULL },
	{ "latency_us", CONF_NUMBER, NULL, false, 0, 1e7, NULL },
	END,
};

const struct conf_member suite_members[] = {
	{ "title", CONF_TEXT, NULL, true, 0, 0, NULL },
	{ "summary", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "interval_ms", CONF_INT, NULL, false, 100, 60000, NULL },
	{ "seed", CONF_INT, NULL, false, 0, 1e15, NULL },
	{ "silent", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "seconds", CONF_US, "length_us", false, 0, 0, NULL },
	{ "warmup", CONF_US, "warmup_us", false, 0, 0, NULL },
	{ "step", CONF_US, "step_us", false, 0, 0, NULL },
	{ "mode", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "percent", CONF_NUMBERS, NULL, false, 0.1, 1000, NULL },
	{ "outstanding", CONF_NUMBERS, NULL, false, 1, 4096, NULL },
	{ "outstanding_min", CONF_INT, NULL, false, 1, 4096, NULL },
	{ "outstanding_max", CONF_INT, NULL, false, 1, 4096, NULL },
	{ "gain", CONF_NUMBER, NULL, false, 0.001, 1, NULL },
	{ "schedule", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "early_ci", CONF_NUMBER, NULL, false, 0, 1, NULL },
	{ "series", CONF_LIST, NULL, false, 0, 0, series_members },
	{ "phases", CONF_LIST, NULL, true, 0, 0, phase_members },
	END,
};

/* ---- series ------------------------------------------------------------- */

/* The vDisks, a list that is given away, are loaded at once. */
static int series_add(struct suite *s, const json_t *given, json_t *vdisks,
		      const char *name, const json_t *workload)
{
	json_t *series = json_object(),
	       *setup = json_object_get(given, "setup");

	json_object_set_new(series, "name", json_string(name));
	if (json_array_size(vdisks) == 1)
		json_object_set(series, "vdisk", json_array_get(vdisks, 0));
	else
		json_object_set(series, "vdisks", vdisks);
	json_decref(vdisks);
	json_object_set(series, "workload", (json_t *)workload);
	if (setup)
		json_object_set(series, "setup", setup);
	json_object_set(series, "template", json_object_get(given, "name"));
	return json_array_append_new(s->series, series);
}

static void names_add(json_t *names, const char *name)
{
	const json_t *j;
	size_t i;

	json_array_foreach(names, i, j)
		if (!strcmp(json_string_value(j), name))
			return;
	json_array_append_new(names, json_string(name));
}

/* Names, and patterns of those there are; each once. */
static int vdisks_match(const struct suite *s, const json_t *given,
			json_t **names, const config_setting_t *at,
			struct err *err)
{
	const struct suite_params *p = s->params;
	const json_t *j;
	size_t i, k, before;

	*names = json_array();
	json_array_foreach(given, i, j) {
		const char *name = json_string_value(j);

		before = json_array_size(*names);
		if (!strpbrk(name, "*?["))
			names_add(*names, name);
		for (k = 0; strpbrk(name, "*?[") && k < p->there_count; k++)
			if (!fnmatch(name, p->there[k], 0))
				names_add(*names, p->there[k]);
		if (strpbrk(name, "*?[") && json_array_size(*names) == before) {
			json_decref(*names);
			conf_bad(at, err, "vdisks \"%s\": no vDisk is named so",
				 name);
			return -ENODEV;
		}
	}
	return 0;
}

/* A series that names no vDisk becomes one for each that was given. */
static int series_spread(struct suite *s, const json_t *given,
			 const json_t *workload, const config_setting_t *at,
			 struct err *err)
{
	const char *base = json_string_value(json_object_get(given, "name"));
	const struct suite_params *p = s->params;
	bool apart = p->vdisks > 1 && !p->together;
	json_t *names = json_array();
	char name[128];
	size_t i;

	if (!p->vdisks) {
		json_decref(names);
		return conf_bad(at, err,
				"series \"%s\" names no vDisk: say vdisk=NAME",
				base);
	}
	for (i = 0; i < p->vdisks; i++) {
		json_array_append_new(names, json_string(p->vdisk[i]));
		if (!apart)
			continue;
		snprintf(name, sizeof(name), "%s %s", base, p->vdisk[i]);
		series_add(s, given, names, name, workload);
		names = json_array();
	}
	if (!apart)
		return series_add(s, given, names, base, workload);
	json_decref(names);
	return 0;
}

static int series_max_from(struct suite *s, const json_t *given,
			   const config_setting_t *at, struct err *err)
{
	const char *name =
		json_string_value(json_object_get(given, "max_from"));
	size_t i, last = json_array_size(s->series) - 1;

	if (!name)
		return 0;
	for (i = 0; i < last; i++)
		if (!strcmp(name,
			    json_string_value(json_object_get(
				    json_array_get(s->series, i), "name")))) {
			json_object_set_new(json_array_get(s->series, last),
					    "max_from",
					    json_integer((json_int_t)i));
			return 0;
		}
	return conf_bad(at, err,
			"max_from \"%s\": expected a series before this one",
			name);
}

static int series_read(struct suite *s, const config_setting_t *at,
		       const json_t *given, struct err *err)
{
	json_t *vdisk = json_object_get(given, "vdisk");
	json_t *vdisks = json_object_get(given, "vdisks");
	const char *name =
		json_string_value(json_object_get(given, "workload"));
	const json_t *workload = workload_find(&s->library, name);
	json_t *names = NULL;
	int r = 0;

	if (!workload)
		return conf_bad(config_setting_get_member(at, "workload"), err,
				"workload \"%s\" is not in the library: "
				"`iodeck workload list` names them",
				name);
	if (vdisk && vdisks)
		return conf_bad(at, err, "expected either vdisk or vdisks");
	if (!vdisk && !vdisks)
		return series_spread(s, given, workload, at, err);
	if (vdisk)
		names = json_pack("[O]", vdisk);
	else
		r = vdisks_match(s, vdisks, &names,
				 config_setting_get_member(at, "vdisks"), err);
	if (r)
		return r;
	r = series_add(s, given, names,
		       json_string_value(json_object_get(given, "name")),
		       workload);
	return r ? r : series_max_from(s, given, at, err);
}

static int series_read_all(struct suite *s, const config_setting_t *root,
			   struct err *err)
{
	const config_setting_t *list =
		config_setting_get_member(root, "series");
	const json_t *given = json_object_get(s->root, "series");
	size_t i;
	int r = 0;

	for (i = 0; !r && i < json_array_size(given); i++)
		r = series_read(s, config_setting_get_elem(list, (unsigned)i),
				json_array_get(given, i), err);
	return r;
}

/* ---- what the command line and the options say -------------------------- */

static int numbers_of(const char *text, const char *name, double min,
		      double max, json_t **list, struct err *err)
{
	char word[32];
	double v;
	size_t n;

	*list = json_array();
	for (;; text += n + 1) {
		n = strcspn(text, ",");
		if (n < sizeof(word)) {
			memcpy(word, text, n);
			word[n] = '\0';
		}
		if (n >= sizeof(word) || units_number(word, &v) ||
		    !(v >= min && v <= max)) {
			json_decref(*list);
			return err_set(err, -EINVAL,
				       "%s: expected numbers from %g to %g "
				       "with commas between",
				       name, min, max);
		}
		json_array_append_new(*list, json_real(v));
		if (!text[n])
			return 0;
	}
}

static void root_default(json_t *root, const char *name, double value)
{
	if (!json_object_get(root, name))
		json_object_set_new(root, name,
				    json_integer((json_int_t)llround(value)));
}

/* With seconds given, all that a point needs shrinks or grows along. */
static void params_seconds(struct suite *s, json_t *root)
{
	double us = s->params->seconds * 1e6, warm, interval;

	if (isnan(us))
		return;
	json_object_set_new(root, "length_us",
			    json_integer((json_int_t)llround(us)));
	warm = json_number_value(json_object_get(root, "warmup_us"));
	if (warm > us / 2)
		json_object_set_new(root, "warmup_us",
				    json_integer((json_int_t)(us / 2)));
	if (json_number_value(json_object_get(root, "step_us")) > us)
		json_object_set_new(root, "step_us",
				    json_integer((json_int_t)us));
	/* Enough intervals for a confidence interval. */
	interval = floor(us / 1000 / 10);
	interval = interval < 100 ? 100 : interval;
	if (json_number_value(json_object_get(root, "interval_ms")) > interval)
		json_object_set_new(root, "interval_ms",
				    json_integer((json_int_t)interval));
}

static int params_lists(struct suite *s, json_t *root, struct err *err)
{
	const struct suite_params *p = s->params;
	json_t *list;
	int r;

	if (p->percent) {
		r = numbers_of(p->percent, "percent", 0.1, 1000, &list, err);
		if (r)
			return r;
		json_object_set_new(root, "percent", list);
	}
	if (p->outstanding) {
		r = numbers_of(p->outstanding, "outstanding", 1, 4096, &list,
			       err);
		if (r)
			return r;
		json_object_set_new(root, "outstanding", list);
	}
	return 0;
}

static int params_apply(struct suite *s, struct err *err)
{
	const struct suite_params *p = s->params;
	const struct options *o = p->options;
	json_t *root = s->root;

	root_default(root, "seed", 1);
	root_default(root, "interval_ms",
		     o ? options_number(o, "interval_ms") : 1000);
	root_default(root, "length_us",
		     o ? options_number(o, "point_seconds") * 1e6 : 60e6);
	root_default(root, "warmup_us",
		     o ? options_number(o, "warmup_seconds") * 1e6 : 5e6);
	root_default(root, "step_us",
		     json_number_value(json_object_get(root, "length_us")) / 6);
	params_seconds(s, root);
	if (!isnan(p->warmup_seconds))
		json_object_set_new(
			root, "warmup_us",
			json_integer((json_int_t)(p->warmup_seconds * 1e6)));
	if (!isnan(p->early_ci))
		json_object_set_new(root, "early_ci", json_real(p->early_ci));
	if (p->mode)
		json_object_set_new(root, "mode", json_string(p->mode));
	if (p->silent)
		json_object_set_new(root, "silent", json_string(p->silent));
	return params_lists(s, root, err);
}

/* ---- the whole ------------------------------------------------------------
 */

static int plan_make(struct suite *s, const config_setting_t *root,
		     struct err *err)
{
	const config_setting_t *list =
		config_setting_get_member(root, "phases");
	const json_t *given = json_object_get(s->root, "phases");
	size_t i;
	int r;

	s->series = json_array();
	s->phases = json_array();
	r = params_apply(s, err);
	if (!r)
		r = series_read_all(s, root, err);
	for (i = 0; !r && i < json_array_size(given); i++)
		r = suite_phase(s, config_setting_get_elem(list, (unsigned)i),
				json_array_get(given, i), err);
	return r;
}

static json_t *plan_of(struct suite *s)
{
	json_t *plan = json_object(), *series;
	size_t i;

	json_array_foreach(s->series, i, series)
		json_object_del(series, "template");
	json_object_set(plan, "title", json_object_get(s->root, "title"));
	json_object_set_new(plan, "suite", json_string(s->name));
	json_object_set(plan, "interval_ms",
			json_object_get(s->root, "interval_ms"));
	json_object_set(plan, "seed", json_object_get(s->root, "seed"));
	if (json_object_get(s->root, "silent"))
		json_object_set(plan, "silent",
				json_object_get(s->root, "silent"));
	json_object_set(plan, "series", s->series);
	json_object_set(plan, "phases", s->phases);
	return plan;
}

/*
 * A workload's name stands for the plainest suite of it: fill, rest, a curve.
 * So whatever is in the library can be run as it is.
 */
static int suite_of_workload(const json_t *workload, config_t *file,
			     struct err *err)
{
	const char *name = json_string_value(json_object_get(workload, "name"));
	const char *title =
		json_string_value(json_object_get(workload, "title"));
	char text[1024];

	snprintf(text, sizeof(text),
		 "title = \"%.100s\"; seconds = 10; warmup = 2; step = 3;\n"
		 "series = ( { name = \"%.100s\"; workload = \"%.100s\"; } );\n"
		 "phases = ( { kind = \"prefill\"; },\n"
		 "  { kind = \"rest\"; seconds = 2; }, { kind = \"curve\"; } "
		 ");\n",
		 title, title, name);
	config_init(file);
	if (config_read_string(file, text) == CONFIG_TRUE)
		return 0;
	err_set(err, -EINVAL,
		"workload \"%s\" has a name or title that a suite cannot be "
		"made of: %s",
		name, config_error_text(file));
	config_destroy(file);
	return -EINVAL;
}

static int suite_read(const char *name, const struct workload_library *library,
		      config_t *file, json_t **root, char *path, size_t len,
		      struct err *err)
{
	const json_t *workload;
	int r;

	r = path_find("suites", name, path, len);
	workload = r && library ? workload_find(library, name) : NULL;
	if (workload) {
		snprintf(path, len, "%s", name);
		r = suite_of_workload(workload, file, err);
	} else if (r) {
		return err_set(err, -ENOENT,
			       "no suite or workload \"%s\": `iodeck suite "
			       "list` and `iodeck workload list` name those "
			       "there are",
			       name);
	} else {
		r = conf_read(path, file, err);
	}
	if (r)
		return r;
	r = conf_object(config_root_setting(file), suite_members, root, err);
	if (r)
		config_destroy(file);
	return r;
}

/* The file's name without folders and ending. */
static void suite_name(const char *path, char *buf, size_t len)
{
	const char *slash = strrchr(path, '/');
	char *dot;

	snprintf(buf, len, "%s", slash ? slash + 1 : path);
	dot = strrchr(buf, '.');
	if (dot)
		*dot = '\0';
}

int suite_load(const char *name, const struct suite_params *params,
	       json_t **plan, struct err *err)
{
	struct suite s = { .params = params };
	char path[PATH_MAX];
	config_t file;
	int r;

	r = workload_library_load(&s.library, err);
	if (r)
		return r;
	r = suite_read(name, &s.library, &file, &s.root, path, sizeof(path),
		       err);
	if (r)
		goto out_library;
	suite_name(path, s.name, sizeof(s.name));
	r = plan_make(&s, config_root_setting(&file), err);
	if (!r) {
		*plan = plan_of(&s);
		r = plan_check(*plan, err);
		if (r)
			json_decref(*plan);
	}
	json_decref(s.series);
	json_decref(s.phases);
	json_decref(s.root);
	config_destroy(&file);
out_library:
	workload_library_free(&s.library);
	return r;
}

int suite_describe(const char *name, json_t **about, struct err *err)
{
	char path[PATH_MAX], base[64];
	config_t file;
	json_t *root;
	int r;

	r = suite_read(name, NULL, &file, &root, path, sizeof(path), err);
	if (r)
		return r;
	suite_name(path, base, sizeof(base));
	*about = json_pack(
		"{s:s,s:O,s:s,s:s}", "name", base, "title",
		json_object_get(root, "title"), "summary",
		json_object_get(root, "summary")
			? json_string_value(json_object_get(root, "summary"))
			: "",
		"path", path);
	json_decref(root);
	config_destroy(&file);
	return *about ? 0 : err_set(err, -ENOMEM, "out of memory");
}
