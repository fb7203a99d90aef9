/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/run/workload.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/paths.h"

const struct conf_member workload_members[] = {
	{ "name", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "title", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "summary", CONF_TEXT, NULL, false, 0, 0, NULL },
	{ "read_share", CONF_NUMBER, NULL, true, 0, 1, NULL },
	{ "random_share", CONF_NUMBER, NULL, false, 0, 1, NULL },
	{ "sizes", CONF_SIZES, NULL, false, 0, 0, NULL },
	{ "read_sizes", CONF_SIZES, NULL, false, 0, 0, NULL },
	{ "write_sizes", CONF_SIZES, NULL, false, 0, 0, NULL },
	{ "footprint", CONF_BYTES, "footprint_bytes", false, 0, 0, NULL },
	{ "footprint_share", CONF_NUMBER, NULL, false, 0.001, 1, NULL },
	{ "compress_ratio", CONF_NUMBER, NULL, false, 1, 16, NULL },
	{ "flush_every", CONF_INT, NULL, false, 0, 1e9, NULL },
	{ "fua", CONF_BOOL, NULL, false, 0, 0, NULL },
	{ "streams", CONF_INT, NULL, false, 1, 4096, NULL },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};

const struct conf_member matrix_members[] = {
	{ "patterns", CONF_TEXTS, NULL, true, 0, 0, NULL },
	{ "sizes", CONF_SIZES, NULL, true, 0, 0, NULL },
	{ NULL, CONF_TEXT, NULL, false, 0, 0, NULL },
};

static void set_default(json_t *object, const char *name, json_t *value)
{
	if (json_object_get(object, name))
		json_decref(value);
	else
		json_object_set_new(object, name, value);
}

int workload_complete(json_t *w, const config_setting_t *at, struct err *err)
{
	json_t *sizes = json_object_get(w, "sizes");

	if (sizes) {
		if (json_object_get(w, "read_sizes"))
			return conf_bad(at, err,
					"expected either sizes or read_sizes");
		json_object_set(w, "read_sizes", sizes);
		json_object_del(w, "sizes");
	}
	if (!json_object_get(w, "read_sizes"))
		return conf_bad(at, err, "expected sizes here");
	if (json_object_get(w, "footprint_bytes") &&
	    json_object_get(w, "footprint_share"))
		return conf_bad(at, err,
				"expected either footprint or "
				"footprint_share");
	set_default(w, "title", json_incref(json_object_get(w, "name")));
	set_default(w, "random_share", json_real(1.0));
	set_default(w, "footprint_bytes", json_integer(0));
	set_default(w, "footprint_share", json_real(1.0));
	set_default(w, "compress_ratio", json_real(1.0));
	set_default(w, "flush_every", json_integer(0));
	set_default(w, "fua", json_false());
	set_default(w, "streams", json_integer(1));
	return 0;
}

/* ---- the peak matrix ---------------------------------------------------- */

static const struct {
	const char *name, *title;
	double read_share, random_share;
} patterns[] = {
	{ "RR", "random read", 1, 1 },
	{ "RW", "random write", 0, 1 },
	{ "SR", "sequential read", 1, 0 },
	{ "SW", "sequential write", 0, 0 },
};

json_t *workload_peak(const char *pattern, double bytes)
{
	char name[32], title[64], size[16];
	size_t i;

	for (i = 0; i < array_len(patterns); i++)
		if (!strcmp(patterns[i].name, pattern))
			break;
	if (i == array_len(patterns))
		return NULL;
	if (bytes >= 1 << 20)
		snprintf(size, sizeof(size), "%gm", bytes / (1 << 20));
	else
		snprintf(size, sizeof(size), "%gk", bytes / 1024);
	snprintf(name, sizeof(name), "%c%c%s", tolower(pattern[0]),
		 tolower(pattern[1]), size);
	snprintf(title, sizeof(title), "%s %s", size, patterns[i].title);
	title[strlen(size) - 1] = (char)toupper(title[strlen(size) - 1]);
	return json_pack("{s:s,s:s,s:f,s:f,s:[[I,f]],s:i,s:f,s:f,s:i,s:b,s:i}",
			 "name", name, "title", title, "read_share",
			 patterns[i].read_share, "random_share",
			 patterns[i].random_share, "read_sizes",
			 (json_int_t)bytes, 1.0, "footprint_bytes", 0,
			 "footprint_share", 1.0, "compress_ratio", 1.0,
			 "flush_every", 0, "fua", 0, "streams", 1);
}

/* ---- files -------------------------------------------------------------- */

static int add(json_t *list, json_t *w, const config_setting_t *at,
	       struct err *err)
{
	const char *name = json_string_value(json_object_get(w, "name"));
	const json_t *other;
	size_t i;
	int r = 0;

	json_array_foreach(list, i, other)
		if (!r && name &&
		    !strcmp(name,
			    json_string_value(json_object_get(other, "name"))))
			r = conf_bad(at, err,
				     "workload \"%s\" is there already: "
				     "expected a name of its own",
				     name);
	if (r)
		json_decref(w);
	else
		json_array_append_new(list, w);
	return r;
}

static int read_workload(const config_setting_t *s, json_t *list,
			 struct err *err)
{
	json_t *w;
	int r;

	r = conf_object(s, workload_members, &w, err);
	if (r)
		return r;
	if (!json_object_get(w, "name"))
		r = conf_bad(s, err, "expected name here");
	if (!r)
		r = workload_complete(w, s, err);
	if (r) {
		json_decref(w);
		return r;
	}
	return add(list, w, s, err);
}

static int read_matrix(const config_setting_t *s, json_t *list, struct err *err)
{
	json_t *m, *w, *pattern, *size;
	size_t i, j;
	int r;

	r = conf_object(s, matrix_members, &m, err);
	if (r)
		return r;
	json_array_foreach(json_object_get(m, "patterns"), i, pattern) {
		json_array_foreach(json_object_get(m, "sizes"), j, size) {
			if (r)
				continue;
			w = workload_peak(
				json_string_value(pattern),
				json_number_value(json_array_get(size, 0)));
			if (!w)
				r = conf_bad(s, err,
					     "pattern \"%s\": expected RR, "
					     "RW, SR or SW",
					     json_string_value(pattern));
			else
				r = add(list, w, s, err);
		}
	}
	json_decref(m);
	return r;
}

static int read_root(const config_setting_t *root, json_t *list,
		     struct err *err)
{
	config_setting_t *s;
	int i, j, r = 0;

	for (i = 0; !r && i < config_setting_length(root); i++) {
		s = config_setting_get_elem(root, (unsigned)i);
		if (!strcmp(config_setting_name(s), "matrix")) {
			r = read_matrix(s, list, err);
			continue;
		}
		if (strcmp(config_setting_name(s), "workloads") != 0 ||
		    !config_setting_is_list(s))
			return conf_bad(s, err,
					"expected workloads = ( { ... } ) or "
					"matrix = { ... }");
		for (j = 0; !r && j < config_setting_length(s); j++)
			r = read_workload(
				config_setting_get_elem(s, (unsigned)j), list,
				err);
	}
	return r;
}

static int read_file(const char *name, json_t *list, struct err *err)
{
	char path[PATH_MAX];
	config_t file;
	int r;

	r = path_find("workloads", name, path, sizeof(path));
	if (!r)
		r = conf_read(path, &file, err);
	if (r)
		return r;
	r = read_root(config_root_setting(&file), list, err);
	config_destroy(&file);
	return r;
}

int workload_library_load(struct workload_library *library, struct err *err)
{
	char **names;
	size_t i;
	int r;

	library->list = NULL;
	r = path_list("workloads", &names);
	if (r)
		return err_set(err, r, "out of memory");
	library->list = json_array();
	for (i = 0; !r && names[i]; i++)
		r = read_file(names[i], library->list, err);
	path_list_free(names);
	if (r)
		workload_library_free(library);
	return r;
}

void workload_library_free(struct workload_library *library)
{
	json_decref(library->list);
	library->list = NULL;
}

json_t *workload_find(const struct workload_library *library, const char *name)
{
	json_t *w;
	size_t i;

	json_array_foreach(library->list, i, w)
		if (!strcmp(json_string_value(json_object_get(w, "name")),
			    name))
			return w;
	return NULL;
}

/* ---- figures ------------------------------------------------------------ */

static double mean(const json_t *sizes)
{
	double sum = 0.0, weights = 0.0, weight;
	const json_t *pair;
	size_t i;

	json_array_foreach(sizes, i, pair) {
		weight = json_number_value(json_array_get(pair, 1));
		sum += weight * json_number_value(json_array_get(pair, 0));
		weights += weight;
	}
	return weights > 0.0 ? sum / weights : 0.0;
}

double workload_mean_bytes(const json_t *w)
{
	const json_t *reads = json_object_get(w, "read_sizes");
	const json_t *writes = json_object_get(w, "write_sizes");
	double share = json_number_value(json_object_get(w, "read_share"));

	return share * mean(reads) +
	       (1.0 - share) * mean(json_array_size(writes) ? writes : reads);
}
