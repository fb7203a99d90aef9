/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Erasure code of a policy (k, m): ISA-L's Vandermonde matrix, tables made
 * once for encoding and once for each set of k survivors. With k = 1 every
 * row equals the data, so mirrors are the same code.
 */
#ifndef ENGINE_VDISK_EC_H
#define ENGINE_VDISK_EC_H

#include "engine/base.h"

#define EC_CODED_MAX 16 /* k + m of a policy with m > 0; m is 3 at most */

struct ec;

/* -ENOMEM; -EINVAL beyond the limits above. m = 0 gives an empty code. */
int ec_new(unsigned k, unsigned m, struct ec **ec);
void ec_free(struct ec *ec); /* takes NULL */

/* parity[0..m) from data[0..k), len bytes each. */
void ec_encode(const struct ec *ec, size_t len, uint8_t **data,
	       uint8_t **parity);
/* Adds the change delta = old ^ new of data chunk i to all m parities. */
void ec_update(const struct ec *ec, size_t len, unsigned i, uint8_t *delta,
	       uint8_t **parity);
/*
 * Chunk `want` (data or parity) from k chunks.
 * have   bits of the chunks known, exactly k
 * chunk  by chunk index; those in have are read
 * want   not in have
 */
void ec_decode(const struct ec *ec, size_t len, unsigned have, unsigned want,
	       uint8_t *const *chunk, uint8_t *out);
/* delta ^= other, len a multiple of 8. */
void ec_xor(uint8_t *delta, const uint8_t *other, size_t len);

#endif
