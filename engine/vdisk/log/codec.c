/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * crc32_iscsi() does no inversions and takes no const pointer; both are put
 * right here. LZ4 wants the exact length of what it unpacks and granules round
 * it up: LZ4_decompress_safe_partial() with the target's size does without,
 * as every block is FMT_BLOCK long. zstd frames carry their own length, so its
 * length is found by ZSTD_findFrameCompressedSize().
 *
 * What does not compress costs most: the whole block is searched for nothing.
 * So a vDisk remembers how its blocks have fared. After POOR_AFTER in a row
 * that saved nothing, a block that looks like noise is stored raw unsearched,
 * all but one in POOR_TRY; the first that saves something ends it. Noise is
 * told by a sample: as many different bytes as chance has, which text, tables,
 * code and blocks with room left have not. What may be missed are blocks of
 * noise that repeats within the block, amid at least POOR_AFTER others that
 * saved nothing, for as long as none of those tried shows it.
 */
#include "engine/vdisk/log/codec.h"

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>
#include <lz4.h>
#include <zstd.h>

#include "engine/vdisk/log/format.h"
#include "engine/vdisk/log/mut.h"

#define ZSTD_LEVEL 1
#define FIT (FMT_BLOCK - FMT_GRAN)
#define POOR_AFTER 32
#define POOR_TRY 16
/* Of random bytes 128 hold 100.9 values, with a deviation of 3.7. */
#define SAMPLE_STEP 32
#define SAMPLE_NOISE 86

struct codec {
	/* What a checksum becomes by so many granules of zeros, a byte of it
	 * at a time: it is linear. */
	uint32_t zeros[FMT_BLOCK_GRANS + 1][4][256];
	unsigned poor; /* blocks in a row that saved nothing */
	void *lz4;
	ZSTD_CCtx *zc;
	ZSTD_DCtx *zd;
};

/* zstd makes its tables, 67 KiB, at the first block: let that be now. */
static bool zstd_ready(struct codec *c)
{
	static const uint8_t block[FMT_BLOCK];
	uint8_t out[FMT_GRAN];

	return c->zc && c->zd &&
	       !ZSTD_isError(ZSTD_compressCCtx(c->zc, out, sizeof(out), block,
					       FMT_BLOCK, ZSTD_LEVEL));
}

static void zeros_init(struct codec *c)
{
	static const uint8_t zero[FMT_BLOCK];

	for (unsigned g = 0; g <= FMT_BLOCK_GRANS; g++)
		for (unsigned i = 0; i < 4; i++)
			for (uint32_t x = 0; x < 256; x++)
				c->zeros[g][i][x] = codec_crc_add(
					x << 8 * i, zero, g * FMT_GRAN);
}

int codec_new(struct codec **out)
{
	struct codec *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->lz4 = malloc((size_t)LZ4_sizeofState());
	c->zc = ZSTD_createCCtx();
	c->zd = ZSTD_createDCtx();
	if (!c->lz4 || !zstd_ready(c)) {
		codec_free(c);
		return -ENOMEM;
	}
	zeros_init(c);
	*out = c;
	return 0;
}

void codec_free(struct codec *c)
{
	if (!c)
		return;
	free(c->lz4);
	ZSTD_freeCCtx(c->zc);
	ZSTD_freeDCtx(c->zd);
	free(c);
}

bool codec_is_zero(const uint8_t *block)
{
	/* The first word decides nearly always; memcmp on itself the rest. */
	static const uint8_t zero[16];

	return !memcmp(block, zero, 16) &&
	       !memcmp(block, block + 16, FMT_BLOCK - 16);
}

static size_t compress(struct codec *c, unsigned want, const uint8_t *block,
		       uint8_t *out)
{
	size_t n;
	int rc;

	switch (want) {
	case CODEC_LZ4:
		rc = LZ4_compress_fast_extState(c->lz4, (const char *)block,
						(char *)out, FMT_BLOCK, FIT, 1);
		return rc > 0 ? (size_t)rc : 0;
	case CODEC_ZSTD:
		n = ZSTD_compressCCtx(c->zc, out, FIT, block, FMT_BLOCK,
				      ZSTD_LEVEL);
		return ZSTD_isError(n) ? 0 : n;
	default:
		return 0;
	}
}

static bool looks_like_noise(const uint8_t *block)
{
	uint8_t seen[256] = { 0 };
	unsigned values = 0;

	/* The offset moves on, for data in columns of a power of two. */
	for (unsigned i = 0; i < FMT_BLOCK; i += SAMPLE_STEP)
		seen[block[i + i / 256]] = 1;
	for (unsigned i = 0; i < sizeof(seen); i++)
		values += seen[i];
	return values >= SAMPLE_NOISE;
}

static bool worth_trying(struct codec *c, unsigned want, const uint8_t *block)
{
	if (want == CODEC_NONE)
		return false;
	return c->poor < POOR_AFTER || c->poor % POOR_TRY == 0 ||
	       !looks_like_noise(block);
}

unsigned codec_store(struct codec *c, unsigned want, const uint8_t *block,
		     uint8_t *out, unsigned *codec)
{
	unsigned grans;
	size_t n;

	*codec = CODEC_NONE;
	if (codec_is_zero(block))
		return 0;
	n = worth_trying(c, want, block) ? compress(c, want, block, out) : 0;
	c->poor = n ? 0 : c->poor + 1;
	if (!n) {
		memcpy(out, block, FMT_BLOCK);
		return FMT_BLOCK_GRANS;
	}
	*codec = want;
	grans = (unsigned)((n + FMT_GRAN - 1) / FMT_GRAN);
	memset(out + n, 0, (size_t)grans * FMT_GRAN - n);
	return grans;
}

bool codec_load(struct codec *c, unsigned codec, const uint8_t *stored,
		unsigned grans, uint8_t *block)
{
	const size_t len = (size_t)grans * FMT_GRAN;
	size_t n;

	switch (codec) {
	case CODEC_NONE:
		if (len != FMT_BLOCK)
			return false;
		memcpy(block, stored, FMT_BLOCK);
		return true;
	case CODEC_LZ4:
		return LZ4_decompress_safe_partial(
			       (const char *)stored, (char *)block, (int)len,
			       FMT_BLOCK, FMT_BLOCK) == FMT_BLOCK;
	case CODEC_ZSTD:
		n = ZSTD_findFrameCompressedSize(stored, len);
		if (ZSTD_isError(n))
			return false;
		n = ZSTD_decompressDCtx(c->zd, block, FMT_BLOCK, stored, n);
		return !ZSTD_isError(n) && n == FMT_BLOCK;
	default:
		return false;
	}
}

uint32_t codec_crc_add(uint32_t crc, const void *p, size_t len)
{
	return crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, crc);
}

uint32_t codec_crc(const void *p, size_t len)
{
	return codec_crc_end(codec_crc_add(codec_crc_start(), p, len));
}

static uint32_t mix32(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	return (uint32_t)x;
}

uint32_t codec_crc_zeros(const struct codec *c, uint32_t crc, unsigned grans)
{
	const uint32_t(*t)[256] = c->zeros[grans];

	return t[0][crc & 255] ^ t[1][crc >> 8 & 255] ^ t[2][crc >> 16 & 255] ^
	       t[3][crc >> 24];
}

static uint32_t block_seed(uint32_t vdisk_seed, uint64_t lba)
{
	if (MUT(NO_LBA_SEED))
		lba = 0;
	return ~(vdisk_seed ^ mix32(lba));
}

/* crc(start, bytes) = crc(start, zeros) ^ crc(0, bytes) */
uint32_t codec_block_crc_in(const struct codec *c, uint32_t vdisk_seed,
			    uint64_t lba, const uint8_t *stored, unsigned grans,
			    uint32_t *crc)
{
	const uint32_t bytes =
		codec_crc_add(0, stored, (size_t)grans * FMT_GRAN);

	*crc = codec_crc_zeros(c, *crc, grans) ^ bytes;
	return ~(codec_crc_zeros(c, block_seed(vdisk_seed, lba), grans) ^
		 bytes);
}

uint32_t codec_block_crc(uint32_t vdisk_seed, uint64_t lba,
			 const uint8_t *stored, size_t len)
{
	return ~codec_crc_add(block_seed(vdisk_seed, lba), stored, len);
}
