/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The list of sessions says what came of each, read in slices so small that
 * keys are answered between them, and only once.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/session/session.h"
#include "synth.h"
#include "tui/verdict.h"

static int append(const json_t *event, void *arg)
{
	struct err err;

	return session_append(arg, event, &err);
}

static void write_session(const char *path, int limit)
{
	struct session_writer *w;
	struct synth_opts opts;
	struct err err;

	synth_defaults(&opts);
	opts.limit = limit;
	assert_int_equal(session_create(path, false, &w, &err), 0);
	synth_session(&opts, append, w);
	assert_int_equal(session_close(w, &err), 0);
}

static void entry(struct lib_session *s, const char *dir, const char *name)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	snprintf(s->path, sizeof(s->path), "%s/%s", dir, name);
	s->bytes = stat(s->path, &st) ? 0 : st.st_size;
}

static void test_verdicts(void **state)
{
	char dir[] = "/tmp/iodeck-verdict.XXXXXX", path[128];
	struct lib_session list[4];
	struct library lib = { .session = list, .sessions = 4 };
	struct verdicts *v;
	bool changed, any = false;
	int steps = 0;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/done", dir);
	write_session(path, 0);
	snprintf(path, sizeof(path), "%s/open", dir);
	write_session(path, 100);
	snprintf(path, sizeof(path), "%s/torn", dir);
	write_session(path, 0);
	entry(&list[2], dir, "torn");
	assert_int_equal(truncate(path, list[2].bytes - 3), 0);
	snprintf(path, sizeof(path), "%s/no", dir);
	f = fopen(path, "w");
	fputs("\033]0;no session\a\n", f);
	fclose(f);
	entry(&list[0], dir, "done");
	entry(&list[1], dir, "open");
	entry(&list[2], dir, "torn");
	entry(&list[3], dir, "no");
	assert_int_equal(verdicts_new(&v), 0);
	while (verdicts_step(v, &lib, 1000, &changed) && ++steps < 100000)
		any |= changed;
	assert_true(any && steps > 4);
	assert_string_equal(list[0].verdict, "done");
	assert_string_equal(list[0].where, "demo");
	assert_true(fabs(list[0].peak_iops / synth_max_iops(0) - 1) < 0.03);
	assert_string_equal(list[1].verdict, "open");
	assert_string_equal(list[2].verdict, "torn");
	assert_string_equal(list[3].verdict, "unreadable");
	assert_true(isnan(list[3].peak_iops));
	/* Looked at again, nothing is read again. */
	entry(&list[0], dir, "done");
	assert_false(verdicts_step(v, &lib, 0, &changed));
	assert_true(changed);
	assert_string_equal(list[0].verdict, "done");
	verdicts_free(v);
	for (int i = 0; i < 4; i++)
		unlink(list[i].path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_verdicts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
