/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every shape a policy may have, every set of survivors, every lost chunk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/rng.h"
#include "engine/vdisk/ec.h"

#define LEN 48u

struct stripe {
	uint8_t bytes[EC_CODED_MAX][LEN];
	uint8_t *chunk[EC_CODED_MAX];
};

static void fill(struct stripe *s, const struct ec *ec, unsigned k,
		 struct rng *rng)
{
	for (unsigned i = 0; i < EC_CODED_MAX; i++) {
		s->chunk[i] = s->bytes[i];
		for (unsigned b = 0; b < LEN; b++)
			s->bytes[i][b] = (uint8_t)rng_below(rng, 256);
	}
	ec_encode(ec, LEN, s->chunk, s->chunk + k);
}

static void lost_are_found(struct stripe *s, const struct ec *ec, unsigned n,
			   unsigned have)
{
	uint8_t out[LEN];

	for (unsigned want = 0; want < n; want++) {
		if (have & 1u << want)
			continue;
		memset(out, 0, LEN);
		ec_decode(ec, LEN, have, want, s->chunk, out);
		assert_memory_equal(out, s->bytes[want], LEN);
	}
}

static void test_all(void **state)
{
	struct rng rng;
	unsigned sets = 0;

	(void)state;
	rng_seed(&rng, 11);
	for (unsigned m = 1; m <= 3; m++)
		for (unsigned k = 1; k + m <= EC_CODED_MAX; k++) {
			struct stripe s;
			struct ec *ec;

			assert_int_equal(ec_new(k, m, &ec), 0);
			fill(&s, ec, k, &rng);
			for (unsigned have = 0; have < 1u << (k + m); have++) {
				if ((unsigned)__builtin_popcount(have) != k)
					continue;
				lost_are_found(&s, ec, k + m, have);
				sets++;
			}
			ec_free(ec);
		}
	/* Choose 1, 2 and 3 of up to 16. */
	assert_int_equal(sets, 135 + 679 + 2379);
}

/* With one data chunk every parity is that chunk: mirrors. */
static void test_mirrors(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 12);
	for (unsigned m = 1; m <= 3; m++) {
		struct stripe s;
		struct ec *ec;

		assert_int_equal(ec_new(1, m, &ec), 0);
		fill(&s, ec, 1, &rng);
		for (unsigned i = 1; i <= m; i++)
			assert_memory_equal(s.bytes[i], s.bytes[0], LEN);
		ec_free(ec);
	}
}

static void test_limits(void **state)
{
	struct ec *ec;

	(void)state;
	assert_int_equal(ec_new(0, 1, &ec), -EINVAL);
	assert_int_equal(ec_new(4, 4, &ec), -EINVAL);
	assert_int_equal(ec_new(14, 3, &ec), -EINVAL);
	assert_int_equal(ec_new(16, 0, &ec), 0);
	ec_free(ec);
	ec_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_mirrors),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
