/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tui/library.h"

#include <dirent.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/paths.h"
#include "backend/run/suite.h"
#include "backend/run/workload.h"
#include "backend/session/session.h"
#include "tui/fmt.h"

static void text_get(const json_t *o, const char *name, char *buf, size_t len)
{
	const char *s = json_string_value(json_object_get(o, name));

	snprintf(buf, len, "%s", s ? s : "");
}

static double number_get(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* ---- workloads and suites ------------------------------------------------ */

static void sizes_span(const json_t *sizes, double *lo, double *hi)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(sizes, i, pair) {
		double v = json_number_value(json_array_get(pair, 0));

		if (v <= 0)
			continue;
		*lo = v < *lo ? v : *lo;
		*hi = v > *hi ? v : *hi;
	}
}

static void sizes_text(const json_t *o, char *buf, size_t len)
{
	double lo = INFINITY, hi = 0;
	char a[FMT_MAX], b[FMT_MAX];

	sizes_span(json_object_get(o, "read_sizes"), &lo, &hi);
	sizes_span(json_object_get(o, "write_sizes"), &lo, &hi);
	if (hi <= 0)
		snprintf(buf, len, "-");
	else if (lo == hi)
		snprintf(buf, len, "%s", fmt_bytes(a, lo));
	else
		snprintf(buf, len, "%s to %s", fmt_bytes(a, lo),
			 fmt_bytes(b, hi));
}

static void details_text(const json_t *o, char *buf, size_t len)
{
	double ratio = number_get(o, "compress_ratio");
	double flush = number_get(o, "flush_every");
	double share = number_get(o, "footprint_share");
	char summary[256];
	size_t n;

	text_get(o, "summary", summary, sizeof(summary));
	n = (size_t)snprintf(buf, len, "%s%s", summary, *summary ? "\n" : "");
	n += (size_t)snprintf(buf + n, len - n,
			      "Touches %.0f %% of the vDisk; ",
			      (isfinite(share) ? share : 1) * 100);
	if (isfinite(ratio) && ratio > 1)
		n += (size_t)snprintf(buf + n, len - n,
				      "data compress %.1f:1; ", ratio);
	else
		n += (size_t)snprintf(buf + n, len - n,
				      "data do not compress; ");
	if (flush > 0)
		snprintf(buf + n, len - n, "a flush every %.0f writes.", flush);
	else
		snprintf(buf + n, len - n, "no flushes.");
}

static void workload_read(const json_t *o, struct lib_workload *w)
{
	text_get(o, "name", w->name, sizeof(w->name));
	text_get(o, "title", w->title, sizeof(w->title));
	w->read_share = number_get(o, "read_share");
	w->random_share = number_get(o, "random_share");
	sizes_text(o, w->sizes, sizeof(w->sizes));
	details_text(o, w->text, sizeof(w->text));
}

static void workloads_load(struct library *lib)
{
	struct workload_library library = { 0 };
	struct err err;
	const json_t *o;
	size_t i;

	if (workload_library_load(&library, &err))
		return;
	lib->workload = calloc(json_array_size(library.list) + 1,
			       sizeof(*lib->workload));
	json_array_foreach(library.list, i, o)
		if (lib->workload)
			workload_read(o, &lib->workload[lib->workloads++]);
	workload_library_free(&library);
}

static void suites_load(struct library *lib)
{
	char **names = NULL;
	size_t n = 0;

	if (path_list("suites", &names))
		return;
	while (names[n])
		n++;
	lib->suite = calloc(n + 1, sizeof(*lib->suite));
	for (size_t i = 0; i < n && lib->suite; i++) {
		struct lib_suite *s = &lib->suite[lib->suites];
		struct err err;
		json_t *about;

		if (suite_describe(names[i], &about, &err))
			continue;
		text_get(about, "name", s->name, sizeof(s->name));
		text_get(about, "title", s->title, sizeof(s->title));
		lib->suites += s->name[0] != '\0';
		json_decref(about);
	}
	path_list_free(names);
}

/* ---- sessions ------------------------------------------------------------ */

struct found {
	char *name;
	int64_t changed_s, bytes;
};

static int found_newest(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->changed_s != y->changed_s)
		return x->changed_s < y->changed_s ? 1 : -1;
	return strcmp(y->name, x->name);
}

static bool is_session(const char *name)
{
	const char *end = strstr(name, ".jsonl.zst");

	return end && !end[10] && name[0] != '.';
}

static size_t folder_read(const char *dir, struct found **list)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0, cap = 0;

	*list = NULL;
	while (d && (e = readdir(d))) {
		struct found *more;
		struct stat st;

		if (!is_session(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, 0) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 32;
			more = realloc(*list, cap * sizeof(**list));
			if (!more)
				break;
			*list = more;
		}
		(*list)[n] = (struct found) { strdup(e->d_name), st.st_mtime,
					      st.st_size };
		n += (*list)[n].name != NULL;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(*list, n, sizeof(**list), found_newest);
	return n;
}

/* The first events say what it is; the edges say when. */
static void session_about(struct lib_session *s)
{
	struct session_reader *r = NULL;
	uint64_t torn = 0;
	struct err err;
	json_t *event;

	if (session_open(s->path, &r, &torn, &err)) {
		snprintf(s->what, sizeof(s->what), "%.190s", err.text);
		return;
	}
	session_span(r, &s->from_us, &s->to_us);
	for (int i = 0; i < 20 && !session_next(r, &event, &err); i++) {
		const char *e = json_string_value(json_object_get(event, "e"));

		if (e && !strcmp(e, "open"))
			text_get(event, "title", s->title, sizeof(s->title));
		if (e && !strcmp(e, "run")) {
			text_get(event, "title", s->what, sizeof(s->what));
			i = 20;
		}
		json_decref(event);
	}
	if (torn)
		snprintf(s->what + strlen(s->what),
			 sizeof(s->what) - strlen(s->what),
			 "  (cut short, all before it is whole)");
	session_reader_free(r);
}

static void sessions_load(struct library *lib, const char *dir)
{
	struct found *list;
	size_t n = folder_read(dir, &list);

	lib->session = calloc(n + 1, sizeof(*lib->session));
	for (size_t i = 0; i < n; i++) {
		struct lib_session *s =
			lib->session ? &lib->session[lib->sessions] : NULL;

		if (s && lib->sessions < LIBRARY_SESSIONS_MAX) {
			int len = snprintf(s->path, sizeof(s->path), "%s/%s",
					   dir, list[i].name);

			snprintf(s->name, sizeof(s->name), "%.*s",
				 (int)(strlen(list[i].name) - 10),
				 list[i].name);
			s->from_us = s->to_us = -1;
			s->bytes = list[i].bytes;
			if (len > 0 && (size_t)len < sizeof(s->path)) {
				session_about(s);
				lib->sessions++;
			}
		}
		free(list[i].name);
	}
	free(list);
}

void library_load(struct library *lib, const char *session_path)
{
	char dir[256];

	library_fini(lib);
	workloads_load(lib);
	suites_load(lib);
	snprintf(dir, sizeof(dir), "%s", session_path);
	if (*dir)
		sessions_load(lib, dirname(dir));
	else if (!path_of(PATH_DATA, "sessions", dir, sizeof(dir)))
		sessions_load(lib, dir);
}

void library_fini(struct library *lib)
{
	free(lib->workload);
	free(lib->suite);
	free(lib->session);
	memset(lib, 0, sizeof(*lib));
}
