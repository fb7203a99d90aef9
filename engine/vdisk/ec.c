/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ec_encode_data() everywhere: xor_gen() and pq_gen() want more sources,
 * alignment and lengths of 32, and otherwise return 1 having written nothing.
 * The tables of all k-of-n survivor sets are made at once, so no decode ever
 * allocates or inverts: 15 sets for 4+2 (12 KiB), 560 for 13+3 (700 KiB).
 */
#include "engine/vdisk/ec.h"

#include <stdlib.h>
#include <string.h>

#include <isa-l/erasure_code.h>

#define TABLE_BYTES(k, rows) (32u * (k) * (rows))

struct ec {
	unsigned k, m, n;
	uint8_t matrix[EC_CODED_MAX * EC_CODED_MAX];
	uint8_t *encode; /* k x m */
	/* By bits of the survivors: which of the sets, from 1 on; 0: none. */
	uint16_t *set;
	uint8_t *decode; /* by set: a row of k for each of the m lost */
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

static uint8_t *decode_table(const struct ec *ec, unsigned have, unsigned want)
{
	const unsigned lost = ~have & ((1u << want) - 1);
	const size_t row = (size_t)(ec->set[have] - 1) * ec->m +
			   (unsigned)__builtin_popcount(lost);

	return ec->decode + row * TABLE_BYTES(ec->k, 1);
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
	for (unsigned want = 0; want < ec->n; want++) {
		if (have & 1u << want)
			continue;
		decode_row(ec, inverse, want, row);
		ec_init_tables((int)k, 1, row, decode_table(ec, have, want));
	}
	return 0;
}

static bool is_set(const struct ec *ec, unsigned have)
{
	return (unsigned)__builtin_popcount(have) == ec->k;
}

static int decodes_init(struct ec *ec)
{
	uint16_t sets = 0;
	int rc = 0;

	ec->set = calloc(1u << ec->n, sizeof(*ec->set));
	if (!ec->set)
		return -ENOMEM;
	for (unsigned have = 0; have < 1u << ec->n; have++)
		if (is_set(ec, have))
			ec->set[have] = ++sets;
	ec->decode = malloc((size_t)sets * ec->m * TABLE_BYTES(ec->k, 1));
	if (!ec->decode)
		return -ENOMEM;
	for (unsigned have = 0; have < 1u << ec->n && !rc; have++)
		if (is_set(ec, have))
			rc = decode_init(ec, have);
	return rc;
}

static int ec_init(struct ec *ec)
{
	gf_gen_rs_matrix(ec->matrix, (int)ec->n, (int)ec->k);
	ec->encode = malloc(TABLE_BYTES(ec->k, ec->m));
	if (!ec->encode)
		return -ENOMEM;
	ec_init_tables((int)ec->k, (int)ec->m, ec->matrix + ec->k * ec->k,
		       ec->encode);
	return decodes_init(ec);
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
	free(ec->set);
	free(ec->decode);
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

	id_assert(have < 1u << ec->n && ec->set[have] && want < ec->n &&
		  !(have & 1u << want));
	for (unsigned i = 0; i < ec->n; i++)
		if (have & 1u << i)
			source[count++] = chunk[i];
	ec_encode_data((int)len, (int)ec->k, 1, decode_table(ec, have, want),
		       source, target);
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
