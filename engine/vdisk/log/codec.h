/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What happens to a block between a user and the drives: compressed to whole
 * granules of 512 bytes where that saves one, checksummed by CRC-32C over the
 * stored bytes, seeded by vDisk and LBA so that a block read for another LBA
 * never passes.
 */
#ifndef ENGINE_VDISK_LOG_CODEC_H
#define ENGINE_VDISK_LOG_CODEC_H

#include "engine/base.h"

struct codec; /* working memory of one vDisk */

int codec_new(struct codec **codec);
void codec_free(struct codec *codec); /* takes NULL */

/*
 * Stores a block of FMT_BLOCK bytes into out (as long) the way asked for, raw
 * if that does not save a granule; the last granule's rest is zeroed.
 * want   CODEC_*
 * codec  out: CODEC_* used
 * Returns granules, 1..8; 0: the block is all zeros, nothing is stored.
 */
unsigned codec_store(struct codec *c, unsigned want, const uint8_t *block,
		     uint8_t *out, unsigned *codec);
/* The reverse. False: what is stored is no block of this codec. */
bool codec_load(struct codec *c, unsigned codec, const uint8_t *stored,
		unsigned grans, uint8_t *block);
bool codec_is_zero(const uint8_t *block);

/* Of stored bytes. */
uint32_t codec_block_crc(uint32_t vdisk_seed, uint64_t lba,
			 const uint8_t *stored, size_t len);

/*
 * The same of whole granules, and *crc, a checksum under way of what they
 * stand in, brought along: the bytes are gone over once.
 */
uint32_t codec_block_crc_in(const struct codec *c, uint32_t vdisk_seed,
			    uint64_t lba, const uint8_t *stored, unsigned grans,
			    uint32_t *crc);
/* Adds granules of zeros, 0 to 8. */
uint32_t codec_crc_zeros(const struct codec *c, uint32_t crc, unsigned grans);

/* CRC-32C, plain. */
uint32_t codec_crc(const void *p, size_t len);
static inline uint32_t codec_crc_start(void)
{
	return ~0u;
}
uint32_t codec_crc_add(uint32_t crc, const void *p, size_t len);
static inline uint32_t codec_crc_end(uint32_t crc)
{
	return ~crc;
}

#endif
