/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ec_encode_data() everywhere: xor_gen() and pq_gen() want more sources,
 * alignment and lengths of 32, and otherwise return 1 having written nothing.
 * The tables of all k-of-n survivor sets are made at once: at most 15 of them
 * for 4+2, so no decode ever allocates or inverts.
 */
#include "engine/vdisk/ec.h"

#include <stdlib.h>
#include <string.h>

#include <isa-l/erasure_code.h>

#define TABLE_BYTES(k, rows) (32u * (k) * (rows))

struct ec {
	unsigned k, m, n;
	uint8_t matrix[EC_CODED_MAX * EC_CODED_MAX];
	uint8_t *encode;                     /* k x m */
	uint8_t *decode[1u << EC_CODED_MAX]; /* by have: n rows of k */
};

/* Row `want` of the matrix times the inverse of the survivors' rows. */
static void decode_row(const struct ec *ec, const uint8_t *inverse,
		       unsigned want, uint8_t *row)
{
	const unsigned k = ec->k;

	for (unsigned col = 0; col < k; col++) {
		uint8_t sum = 0;

		for (unsigned i = 0; i < k; i++)
			sum ^= gf_mul(ec->matrix[want * k + i],
				      inverse[i * k + col]);
		row[col] = sum;
	}
}

static int decode_init(struct ec *ec, unsigned have)
{
	uint8_t rows[EC_CODED_MAX * EC_CODED_MAX];
	uint8_t inverse[EC_CODED_MAX * EC_CODED_MAX];
	uint8_t row[EC_CODED_MAX];
	const unsigned k = ec->k;
	unsigned r = 0;

	for (unsigned i = 0; i < ec->n; i++)
		if (have & 1u << i)
			memcpy(rows + r++ * k, ec->matrix + i * k, k);
	/* gf_invert_matrix() destroys its input. */
	if (gf_invert_matrix(rows, inverse, (int)k))
		return -EINVAL;
	ec->decode[have] = malloc(TABLE_BYTES(k, ec->n));
	if (!ec->decode[have])
		return -ENOMEM;
	for (unsigned want = 0; want < ec->n; want++) {
		decode_row(ec, inverse, want, row);
		ec_init_tables((int)k, 1, row,
			       ec->decode[have] + TABLE_BYTES(k, want));
	}
	return 0;
}

static int ec_init(struct ec *ec)
{
	int rc;

	gf_gen_rs_matrix(ec->matrix, (int)ec->n, (int)ec->k);
	ec->encode = malloc(TABLE_BYTES(ec->k, ec->m));
	if (!ec->encode)
		return -ENOMEM;
	ec_init_tables((int)ec->k, (int)ec->m, ec->matrix + ec->k * ec->k,
		       ec->encode);
	for (unsigned have = 0; have < 1u << ec->n; have++) {
		if ((unsigned)__builtin_popcount(have) != ec->k)
			continue;
		rc = decode_init(ec, have);
		if (rc)
			return rc;
	}
	return 0;
}

int ec_new(unsigned k, unsigned m, struct ec **out)
{
	struct ec *ec;
	int rc;

	if (!k || m > 3 || (m && k + m > EC_CODED_MAX))
		return -EINVAL;
	ec = calloc(1, sizeof(*ec));
	if (!ec)
		return -ENOMEM;
	ec->k = k;
	ec->m = m;
	ec->n = k + m;
	rc = m ? ec_init(ec) : 0;
	if (rc) {
		ec_free(ec);
		return rc;
	}
	*out = ec;
	return 0;
}

void ec_free(struct ec *ec)
{
	if (!ec)
		return;
	free(ec->encode);
	for (unsigned i = 0; i < array_len(ec->decode); i++)
		free(ec->decode[i]);
	free(ec);
}

void ec_encode(const struct ec *ec, size_t len, uint8_t **data,
	       uint8_t **parity)
{
	id_assert(ec->m);
	ec_encode_data((int)len, (int)ec->k, (int)ec->m, ec->encode, data,
		       parity);
}

void ec_update(const struct ec *ec, size_t len, unsigned i, uint8_t *delta,
	       uint8_t **parity)
{
	id_assert(i < ec->k && ec->m);
	ec_encode_data_update((int)len, (int)ec->k, (int)ec->m, (int)i,
			      ec->encode, delta, parity);
}

void ec_decode(const struct ec *ec, size_t len, unsigned have, unsigned want,
	       uint8_t *const *chunk, uint8_t *out)
{
	uint8_t *source[EC_CODED_MAX];
	uint8_t *target[1] = { out };
	unsigned count = 0;

	id_assert(have < 1u << ec->n && ec->decode[have] && want < ec->n);
	for (unsigned i = 0; i < ec->n; i++)
		if (have & 1u << i)
			source[count++] = chunk[i];
	ec_encode_data((int)len, (int)ec->k, 1,
		       ec->decode[have] + TABLE_BYTES(ec->k, want), source,
		       target);
}

void ec_xor(uint8_t *delta, const uint8_t *other, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t a, b;

		memcpy(&a, delta + i, 8);
		memcpy(&b, other + i, 8);
		a ^= b;
		memcpy(delta + i, &a, 8);
	}
}
