/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/load/pattern.h"

#include <math.h>
#include <stdlib.h>

#define DRAW_RANGE 4294967296.0 /* of 32 bits */

static void sizes_init(struct pattern *p, const struct workload *w,
		       enum bdev_op op, uint64_t footprint)
{
	const struct load_size *size = workload_sizes(w, op, &p->sizes[op]);
	double total = 0.0, sum = 0.0;

	for (unsigned i = 0; i < p->sizes[op]; i++)
		total += size[i].weight;
	for (unsigned i = 0; i < p->sizes[op]; i++) {
		sum += size[i].weight;
		p->size[op][i] = (struct pattern_size) {
			.bytes = size[i].bytes,
			.below = (uint64_t)llround(sum / total * DRAW_RANGE),
			.positions = footprint / size[i].bytes,
		};
	}
}

/*
 * Parts begin at multiples of the one length there is, so that streams stay
 * aligned to it; with several lengths, at multiples of a block.
 */
static uint64_t part_unit(const struct pattern *p, uint32_t block)
{
	uint32_t only = 0;

	for (enum bdev_op op = BDEV_READ; op <= BDEV_WRITE; op++) {
		for (unsigned i = 0; i < p->sizes[op]; i++) {
			if (only && p->size[op][i].bytes != only)
				return block;
			only = p->size[op][i].bytes;
		}
	}
	return only;
}

static int streams_init(struct pattern *p, const struct workload *w,
			uint64_t footprint, uint32_t block)
{
	const uint64_t unit = part_unit(p, block);
	const uint64_t units = footprint / unit;

	p->streams = w->streams ? w->streams : 1;
	p->stream = calloc(p->streams, sizeof(*p->stream));
	if (!p->stream)
		return -ENOMEM;
	for (unsigned i = 0; i < p->streams; i++) {
		struct pattern_stream *s = &p->stream[i];

		s->from = units * i / p->streams * unit;
		s->to = units * (i + 1) / p->streams * unit;
		s->next = s->from;
	}
	return 0;
}

int pattern_init(struct pattern *p, const struct workload *w,
		 const struct bdev_limits *limits, uint64_t seed)
{
	const uint64_t footprint = workload_footprint(w, limits);

	*p = (struct pattern) {
		.write_from = (uint64_t)llround(w->read_share * DRAW_RANGE),
		.random_below = (uint64_t)llround(w->random_share * DRAW_RANGE),
	};
	rng_seed(&p->rng, seed);
	if (w->read_share > 0.0)
		sizes_init(p, w, BDEV_READ, footprint);
	if (w->read_share < 1.0)
		sizes_init(p, w, BDEV_WRITE, footprint);
	return streams_init(p, w, footprint, limits->block_bytes);
}

void pattern_fini(struct pattern *p)
{
	free(p->stream);
	p->stream = NULL;
}

static const struct pattern_size *size_pick(struct pattern *p, unsigned op)
{
	const struct pattern_size *size = p->size[op];
	uint32_t draw;

	if (p->sizes[op] == 1)
		return size;
	draw = (uint32_t)(rng_u64(&p->rng) >> 32);
	while (draw >= size->below)
		size++; /* the last one's threshold is above every draw */
	return size;
}

static uint64_t stream_next(struct pattern *p, uint32_t len)
{
	struct pattern_stream *s = &p->stream[p->turn];
	uint64_t off;

	if (++p->turn == p->streams)
		p->turn = 0;
	if (s->next + len > s->to)
		s->next = s->from;
	off = s->next;
	s->next += len;
	return off;
}

struct access pattern_next(struct pattern *p)
{
	const uint64_t draw = rng_u64(&p->rng);
	struct access a;
	const struct pattern_size *size;

	a.op = (uint32_t)(draw >> 32) >= p->write_from ? BDEV_WRITE : BDEV_READ;
	size = size_pick(p, a.op);
	a.len = size->bytes;
	if ((uint32_t)draw < p->random_below)
		a.off = rng_below(&p->rng, size->positions) * size->bytes;
	else
		a.off = stream_next(p, a.len);
	return a;
}
