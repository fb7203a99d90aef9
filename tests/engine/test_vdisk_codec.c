/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the log layout stores of a block, and when it does not try to pack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/rng.h"
#include "engine/vdisk/log/codec.h"
#include "engine/vdisk/log/format.h"

static void noise(struct rng *rng, uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rng_u64(rng);
}

/* Stores, loads, compares; returns granules. */
static unsigned there_and_back(struct codec *c, unsigned want,
			       const uint8_t *block)
{
	uint8_t stored[FMT_BLOCK], back[FMT_BLOCK];
	unsigned codec = 9, grans;

	memset(stored, 0xee, sizeof(stored));
	grans = codec_store(c, want, block, stored, &codec);
	if (!grans) {
		assert_true(codec_is_zero(block));
		return 0;
	}
	assert_true(codec == CODEC_NONE || codec == want);
	assert_true(grans == FMT_BLOCK_GRANS ? codec == CODEC_NONE
					     : codec == want);
	assert_true(codec_load(c, codec, stored, grans, back));
	assert_memory_equal(back, block, FMT_BLOCK);
	return grans;
}

static void any_share_of_noise_comes_back(void **state)
{
	uint8_t block[FMT_BLOCK] = { 0 };
	struct codec *c = NULL;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	assert_int_equal(codec_new(&c), 0);
	for (unsigned want = CODEC_NONE; want < CODEC_COUNT; want++) {
		memset(block, 0, sizeof(block));
		for (unsigned len = 0; len <= FMT_BLOCK; len += 128) {
			unsigned grans;

			noise(&rng, block, len);
			grans = there_and_back(c, want, block);
			if (want == CODEC_NONE && len)
				assert_int_equal(grans, FMT_BLOCK_GRANS);
			if (want != CODEC_NONE && len <= FMT_BLOCK / 2)
				assert_true(grans <= 5);
		}
	}
	codec_free(c);
}

/* After any run of noise, what packs is packed at once where it looks like it,
 * and within 16 blocks where it does not. */
static void noise_is_not_tried_for_ever(void **state)
{
	uint8_t block[FMT_BLOCK];
	struct codec *c = NULL;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	assert_int_equal(codec_new(&c), 0);
	for (unsigned run = 0; run < 40; run++) {
		unsigned tries = 0;

		for (unsigned i = 0; i < 100 + run; i++) {
			noise(&rng, block, sizeof(block));
			assert_int_equal(there_and_back(c, CODEC_LZ4, block),
					 FMT_BLOCK_GRANS);
		}
		if (run % 2) { /* text has few values */
			for (unsigned i = 0; i < FMT_BLOCK; i++)
				block[i] = "0123456789abcdef"[i / 64 % 16];
			assert_true(there_and_back(c, CODEC_LZ4, block) < 8);
			continue;
		}
		/* noise that repeats: by its values it is noise */
		memcpy(block + FMT_BLOCK / 2, block, FMT_BLOCK / 2);
		while (there_and_back(c, CODEC_LZ4, block) == FMT_BLOCK_GRANS)
			assert_true(++tries < 16);
		assert_true(there_and_back(c, CODEC_LZ4, block) < 8);
	}
	codec_free(c);
}

/* Gone over once, both checksums are what they are gone over twice. */
static void checksums_come_along(void **state)
{
	uint8_t all[64 * FMT_BLOCK];
	uint32_t crc = codec_crc_start();
	struct codec *c = NULL;
	struct rng rng;
	size_t len = 0;

	(void)state;
	rng_seed(&rng, 3);
	assert_int_equal(codec_new(&c), 0);
	noise(&rng, all, sizeof(all));
	for (unsigned i = 0; i < 48; i++) {
		const unsigned grans = 1 + i % FMT_BLOCK_GRANS;
		const uint64_t lba = rng_u64(&rng);

		assert_int_equal(
			codec_block_crc_in(c, 7, lba, all + len, grans, &crc),
			codec_block_crc(7, lba, all + len, grans * FMT_GRAN));
		len += grans * FMT_GRAN;
		assert_int_equal(codec_crc_end(crc), codec_crc(all, len));
		if (i % 5)
			continue;
		memset(all + len, 0, i % 8 * FMT_GRAN);
		crc = codec_crc_zeros(c, crc, i % 8);
		len += i % 8 * FMT_GRAN;
		assert_int_equal(codec_crc_end(crc), codec_crc(all, len));
	}
	codec_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_share_of_noise_comes_back),
		cmocka_unit_test(noise_is_not_tried_for_ever),
		cmocka_unit_test(checksums_come_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
