/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a test once for each kind of reactor: EACH(test), of(state). */
#ifndef TESTS_ENGINE_REACTOR_KINDS_H
#define TESTS_ENGINE_REACTOR_KINDS_H

#include "engine/reactor.h"

/* NULL where the kind is not to be had here; the test is then skipped. */
static struct reactor *make(enum reactor_kind kind)
{
	const struct reactor_opts opts = {
		.kind = kind,
		.arena_bytes = 2 * MIB,
		.seed = 1,
		.name = "test",
	};
	struct reactor *r = NULL;
	struct err err;
	const int rc = reactor_new(&opts, &r, &err);

	if (rc) {
		print_message("no %s here: %s\n", reactor_kind_name(kind),
			      err.text);
		assert_null(r);
	}
	return r;
}

static struct reactor *of(void **state)
{
	struct reactor *r = make(*(enum reactor_kind *)*state);

	if (!r)
		skip();
	return r;
}

static enum reactor_kind kinds[] = { REACTOR_URING, REACTOR_THREADS,
				     REACTOR_SIM };

#define EACH(test)                                          \
	cmocka_unit_test_prestate(test, &kinds[0]),         \
		cmocka_unit_test_prestate(test, &kinds[1]), \
		cmocka_unit_test_prestate(test, &kinds[2])

#endif
