/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * See vdisk_rig.h. Everything random comes from the rig's seed, which every
 * failure prints.
 */
#include "tests/engine/vdisk_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TURNS_MAX 4000000u

uint64_t rig_below(struct rig *rig, uint64_t n)
{
	return rng_below(&rig->rng, n);
}

bool rig_chance(struct rig *rig, unsigned percent)
{
	return rig_below(rig, 100) < percent;
}

/* ---- ports -------------------------------------------------------------- */

struct port {
	struct bdev bdev;
	struct rig *rig;
	struct store *store;
	struct port *next;
	bool dead; /* its owner's power is cut */
	struct flight *flights;
};

struct flight {
	struct io *io;
	struct port *port;
	struct flight *next;
	struct timer timer;
};

static bool range_bad(const struct store *s, const struct io *io)
{
	return s->bad_len && io->off < s->bad_off + s->bad_len &&
	       s->bad_off < io->off + io->len;
}

static int store_do(struct store *s, struct io *io)
{
	if (s->offline)
		return -ENODEV;
	if (io->op == BDEV_READ) {
		s->reads++;
		if (range_bad(s, io))
			return -EIO;
		memcpy(io->buf, s->data + io->off, io->len);
	} else if (io->op == BDEV_WRITE) {
		s->writes++;
		if (range_bad(s, io))
			s->bad_len = 0;
		memcpy(s->data + io->off, io->buf, io->len);
		if (s->writes_left && --s->writes_left == 0)
			s->offline = true;
	}
	return 0;
}

static void flight_remove(struct flight *f)
{
	struct flight **at = &f->port->flights;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
}

static void flight_land(struct timer *timer)
{
	struct flight *f = container_of(timer, struct flight, timer);
	struct port *port = f->port;
	struct io *io = f->io;
	const int rc = port->dead ? -ENODEV : store_do(port->store, io);

	flight_remove(f);
	free(f);
	bdev_complete(io, rc);
}

static void port_submit(struct bdev *bdev, struct io *io)
{
	struct port *port = (struct port *)bdev;
	struct flight *f = calloc(1, sizeof(*f));
	const uint64_t now = reactor_now(bdev->reactor);

	f->io = io;
	f->port = port;
	f->next = port->flights;
	port->flights = f;
	f->timer.fn = flight_land;
	timer_arm(bdev->reactor, &f->timer,
		  now + 1000 + rig_below(port->rig, port->rig->latency_ns + 1));
}

static void port_close(struct bdev *bdev)
{
	struct port *port = (struct port *)bdev;
	struct port **at = &port->rig->ports;

	assert_null(port->flights);
	while (*at != port)
		at = &(*at)->next;
	*at = port->next;
	if (port->store->port == port)
		port->store->port = NULL;
	port->rig->live--;
	bdev_closed(bdev);
}

static const struct bdev_ops port_ops = {
	.kind = "port",
	.submit = port_submit,
	.close = port_close,
};

struct bdev *rig_port(struct rig *rig, unsigned store)
{
	struct port *port = calloc(1, sizeof(*port));
	char name[32];

	snprintf(name, sizeof(name), "store%u", store);
	bdev_init(&port->bdev, &port_ops, rig->r, name);
	port->bdev.limits = (struct bdev_limits) {
		.size_bytes = rig->store[store].bytes,
		.block_bytes = RIG_BLOCK,
		.phys_bytes = RIG_BLOCK,
		.align_bytes = 512,
		.io_max_bytes = 1u << 20,
		.can_flush = true,
		.can_fua = true,
	};
	port->rig = rig;
	port->store = &rig->store[store];
	port->store->port = port;
	port->next = rig->ports;
	rig->ports = port;
	rig->live++;
	return &port->bdev;
}

/* Each block of a write in flight lands or not. */
static void flight_cut(struct rig *rig, struct flight *f)
{
	const struct io *io = f->io;
	const unsigned kind = (unsigned)rig_below(rig, 3);

	if (io->op != BDEV_WRITE || f->port->store->offline || kind == 0)
		return;
	for (uint32_t at = 0; at < io->len; at += RIG_BLOCK)
		if (kind == 1 || rig_chance(rig, 50))
			memcpy(f->port->store->data + io->off + at,
			       (uint8_t *)io->buf + at, RIG_BLOCK);
}

void rig_power_cut(struct rig *rig)
{
	for (struct port *p = rig->ports; p; p = p->next) {
		if (p->dead)
			continue;
		p->dead = true;
		for (struct flight *f = p->flights; f; f = f->next)
			flight_cut(rig, f);
	}
}

void rig_store_zero(struct rig *rig, unsigned store)
{
	memset(rig->store[store].data, 0, rig->store[store].bytes);
}

/* ---- the world ---------------------------------------------------------- */

void rig_init(struct rig *rig, uint64_t seed, uint64_t store_bytes)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = seed };
	struct err err = { 0 };

	memset(rig, 0, sizeof(*rig));
	rig->seed = seed;
	rng_seed(&rig->rng, seed);
	rig->latency_ns = 100 * USEC_NS;
	assert_int_equal(reactor_new(&opts, &rig->r, &err), 0);
	for (unsigned i = 0; i < RIG_STORES; i++) {
		rig->store[i].bytes = store_bytes;
		rig->store[i].data = calloc(1, store_bytes);
	}
}

void rig_fini(struct rig *rig)
{
	assert_int_equal(rig->live, 0);
	reactor_free(rig->r);
	for (unsigned i = 0; i < RIG_STORES; i++)
		free(rig->store[i].data);
}

void rig_until(struct rig *rig, const bool *flag)
{
	for (unsigned i = 0; i < TURNS_MAX; i++) {
		if (*flag)
			return;
		reactor_run_once(rig->r, SEC_NS);
	}
	fail_msg("nothing happened any more, seed %llu",
		 (unsigned long long)rig->seed);
}

void rig_run(struct rig *rig, unsigned turns)
{
	while (turns--)
		reactor_run_once(rig->r, 50 * USEC_NS);
}

/* ---- vDisks ------------------------------------------------------------- */

struct vdisk_policy rig_policy(enum raid_level raid, unsigned k, unsigned m,
			       uint32_t unit)
{
	return (struct vdisk_policy) { .raid = raid,
				       .k = (uint8_t)k,
				       .m = (uint8_t)m,
				       .stripe_unit_bytes = unit };
}

void rig_done(int result, const struct err *err, struct bdev *vdisk, void *arg)
{
	struct rig_result *res = arg;

	assert_false(res->done);
	res->done = true;
	res->result = result;
	res->vdisk = vdisk;
	if (err)
		res->err = *err;
}

void rig_slot(struct rig *rig, unsigned store, struct vdisk_slot *slot)
{
	memset(slot, 0, sizeof(*slot));
	slot->bdev = rig_port(rig, store);
	snprintf(slot->domain, sizeof(slot->domain), "f%u", store);
	snprintf(slot->drive, sizeof(slot->drive), "d%u", store);
	snprintf(slot->component, sizeof(slot->component), "c%u", store);
}

struct bdev *rig_create(struct rig *rig, const struct vdisk_policy *policy,
			uint64_t size_bytes, unsigned first)
{
	struct vdisk_slot slot[VDISK_MEMBERS_MAX];
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "db1",
				   .size_bytes = size_bytes,
				   .policy = *policy,
				   .slot = slot };
	struct rig_result res = { 0 };
	struct vdisk_policy copy = *policy;

	assert_int_equal(vdisk_policy_fit(&copy, 16, &spec.slots, NULL), 0);
	for (unsigned i = 0; i < spec.slots; i++)
		rig_slot(rig, first + i, &slot[i]);
	vdisk_create(rig->r, &spec, rig_done, &res);
	rig_until(rig, &res.done);
	if (res.result)
		fail_msg("create: %s", res.err.text);
	return res.vdisk;
}

static void port_gone(void *arg)
{
	(void)arg;
}

struct bdev *rig_open(struct rig *rig, unsigned mask, struct rig_result *res)
{
	struct vdisk_slot slot[RIG_STORES];
	struct vdisk_spec spec = { .cluster = "lab",
				   .name = "db1",
				   .slot = slot };

	memset(res, 0, sizeof(*res));
	for (unsigned i = 0; i < RIG_STORES; i++)
		if (mask & 1u << i)
			rig_slot(rig, i, &slot[spec.slots++]);
	vdisk_open(rig->r, &spec, rig_done, res);
	rig_until(rig, &res->done);
	if (!res->result)
		return res->vdisk;
	assert_null(res->vdisk);
	assert_int_not_equal(res->err.code, 0);
	for (unsigned i = 0; i < spec.slots; i++)
		bdev_close(slot[i].bdev, port_gone, NULL);
	return NULL;
}

static void closed(void *arg)
{
	*(bool *)arg = true;
}

void rig_close(struct rig *rig, struct bdev *vdisk)
{
	bool flag = false;

	bdev_close(vdisk, closed, &flag);
	rig_until(rig, &flag);
}

unsigned rig_member_store(const struct vdisk_info *info, unsigned i)
{
	return (unsigned)atoi(info->slot[i].component + 1);
}

int rig_replace(struct rig *rig, struct bdev *vdisk, unsigned index,
		unsigned store)
{
	struct vdisk_slot slot;
	struct rig_result res = { 0 };

	rig_slot(rig, store, &slot);
	vdisk_replace(vdisk, index, &slot, rig_done, &res);
	rig_until(rig, &res.done);
	return res.result;
}

uint64_t rig_verify(struct rig *rig, struct bdev *vdisk)
{
	struct rig_result res = { 0 };
	uint64_t mismatches;

	vdisk_verify(vdisk, &mismatches, rig_done, &res);
	rig_until(rig, &res.done);
	if (res.result)
		fail_msg("verify: %s, seed %llu", res.err.text,
			 (unsigned long long)rig->seed);
	return mismatches;
}

void rig_healthy(struct rig *rig, struct bdev *vdisk)
{
	struct vdisk_info info;

	for (unsigned i = 0; i < TURNS_MAX; i++) {
		vdisk_info(vdisk, &info);
		if (info.state == VDISK_HEALTHY)
			return;
		if (info.state == VDISK_FAILED)
			fail_msg("failed: %s, seed %llu", info.reason,
				 (unsigned long long)rig->seed);
		reactor_run_once(rig->r, SEC_NS);
	}
	fail_msg("never healthy: %s %s, seed %llu",
		 vdisk_state_name(info.state), info.reason,
		 (unsigned long long)rig->seed);
}

/* ---- shadow ------------------------------------------------------------- */

struct shadow_io {
	struct io io;
	struct shadow *sh;
	uint64_t block, version, submitted;
	unsigned blocks;
	bool lost; /* a crash came between */
	struct shadow_io *next;
};

/* Contents of a block: words made of its number and version; 0: zeros. */
static void pattern(uint8_t *buf, uint64_t block, uint64_t version)
{
	struct rng rng;

	memset(buf, 0, RIG_BLOCK);
	if (!version)
		return;
	memcpy(buf, &version, 8);
	memcpy(buf + 8, &block, 8);
	rng_seed(&rng, version * 1000003 + block);
	for (unsigned i = 16; i < RIG_BLOCK; i += 8) {
		const uint64_t word = rng_u64(&rng);

		memcpy(buf + i, &word, 8);
	}
}

/* The version that stands in buf; fails on anything that never was written. */
static uint64_t pattern_version(struct shadow *sh, const uint8_t *buf,
				uint64_t block)
{
	uint8_t want[RIG_BLOCK];
	uint64_t version;

	memcpy(&version, buf, 8);
	pattern(want, block, version);
	if (memcmp(want, buf, RIG_BLOCK) != 0)
		fail_msg("block %llu: neither of any version (%llx), seed %llu",
			 (unsigned long long)block, (unsigned long long)version,
			 (unsigned long long)sh->rig->seed);
	return version;
}

void shadow_init(struct shadow *sh, struct rig *rig, uint64_t bytes)
{
	memset(sh, 0, sizeof(*sh));
	sh->rig = rig;
	sh->blocks = bytes / RIG_BLOCK;
	sh->clock = 1;
	sh->block = calloc(sh->blocks, sizeof(*sh->block));
	for (uint64_t b = 0; b < sh->blocks; b++) {
		sh->block[b].count = 1;
		sh->block[b].c[0].ended = sh->block[b].c[0].submitted = 1;
	}
}

void shadow_fini(struct shadow *sh)
{
	assert_int_equal(sh->inflight, 0);
	free(sh->block);
}

static void block_purge(struct shadow_block *b)
{
	unsigned keep = 0;

	if (b->readers)
		return;
	for (unsigned i = 0; i < b->count; i++)
		if (!b->c[i].removed)
			b->c[keep++] = b->c[i];
	b->count = keep;
}

/* A write ended: well, what ended before it began is gone. */
static void block_written(struct shadow *sh, struct shadow_io *sio, bool well,
			  struct shadow_block *b)
{
	for (unsigned i = 0; i < b->count; i++) {
		struct candidate *c = &b->c[i];

		if (c->version == sio->version)
			c->ended = sh->clock;
		else if (well && c->ended && c->ended < sio->submitted &&
			 !c->removed)
			c->removed = sh->clock;
	}
	block_purge(b);
}

/*
 * Nothing else was going on: what was read is what stands there, and stays.
 */
static void block_settle(struct shadow *sh, struct shadow_io *sio,
			 struct shadow_block *b, uint64_t version)
{
	for (unsigned i = 0; i < b->count; i++)
		if (!b->c[i].ended || b->c[i].ended >= sio->submitted)
			return;
	for (unsigned i = 0; i < b->count; i++)
		if (b->c[i].version != version && !b->c[i].removed)
			b->c[i].removed = sh->clock;
}

static void block_was_read(struct shadow *sh, struct shadow_io *sio, uint64_t n,
			   const uint8_t *buf)
{
	struct shadow_block *b = &sh->block[n];
	const uint64_t version = pattern_version(sh, buf, n);
	bool right = false;

	for (unsigned i = 0; i < b->count; i++)
		right = right || (b->c[i].version == version &&
				  (!b->c[i].removed ||
				   b->c[i].removed > sio->submitted));
	if (!right)
		fail_msg("block %llu reads as version %llu, which it cannot "
			 "be, seed %llu",
			 (unsigned long long)n, (unsigned long long)version,
			 (unsigned long long)sh->rig->seed);
	block_settle(sh, sio, b, version);
}

static void sio_free(struct shadow_io *sio)
{
	struct shadow_io **at = &sio->sh->ios;

	while (*at != sio)
		at = &(*at)->next;
	*at = sio->next;
	sio->sh->inflight--;
	free(sio->io.buf);
	free(sio);
}

static void sio_done(struct io *io)
{
	struct shadow_io *sio = io->arg;
	struct shadow *sh = sio->sh;

	sh->clock++;
	if (io->result && !sio->lost)
		sh->errors++;
	for (unsigned i = 0; i < sio->blocks; i++) {
		struct shadow_block *b = &sh->block[sio->block + i];

		if (io->op == BDEV_WRITE) {
			if (!sio->lost)
				block_written(sh, sio, !io->result, b);
			continue;
		}
		if (!io->result && !sio->lost)
			block_was_read(sh, sio, sio->block + i,
				       (uint8_t *)io->buf + i * RIG_BLOCK);
		if (!sio->lost)
			b->readers--;
		block_purge(b);
	}
	sio_free(sio);
}

static struct shadow_io *sio_new(struct shadow *sh, enum bdev_op op,
				 uint64_t block, unsigned blocks)
{
	struct shadow_io *sio = calloc(1, sizeof(*sio));

	sio->sh = sh;
	sio->block = block;
	sio->blocks = blocks;
	sio->submitted = ++sh->clock;
	sio->io.op = (uint8_t)op;
	sio->io.off = block * RIG_BLOCK;
	sio->io.len = blocks * RIG_BLOCK;
	sio->io.buf = aligned_alloc(4096, (size_t)blocks * RIG_BLOCK);
	sio->io.done = sio_done;
	sio->io.arg = sio;
	sio->next = sh->ios;
	sh->ios = sio;
	sh->inflight++;
	return sio;
}

bool shadow_write(struct shadow *sh, struct bdev *vdisk, uint64_t block,
		  unsigned blocks, bool fua)
{
	struct shadow_io *sio;

	for (unsigned i = 0; i < blocks; i++)
		if (sh->block[block + i].count == SHADOW_CANDIDATES)
			return false;
	sio = sio_new(sh, BDEV_WRITE, block, blocks);
	sio->version = ++sh->version;
	sio->io.flags = fua ? BDEV_FUA : 0;
	for (unsigned i = 0; i < blocks; i++) {
		struct shadow_block *b = &sh->block[block + i];

		pattern((uint8_t *)sio->io.buf + i * RIG_BLOCK, block + i,
			sio->version);
		b->c[b->count++] = (struct candidate) {
			.version = sio->version,
			.submitted = sio->submitted,
		};
	}
	bdev_submit(vdisk, &sio->io);
	return true;
}

void shadow_read(struct shadow *sh, struct bdev *vdisk, uint64_t block,
		 unsigned blocks)
{
	struct shadow_io *sio = sio_new(sh, BDEV_READ, block, blocks);

	for (unsigned i = 0; i < blocks; i++)
		sh->block[block + i].readers++;
	memset(sio->io.buf, 0xa5, sio->io.len);
	bdev_submit(vdisk, &sio->io);
}

void shadow_flush(struct shadow *sh, struct bdev *vdisk)
{
	struct shadow_io *sio = sio_new(sh, BDEV_FLUSH, 0, 0);

	free(sio->io.buf);
	sio->io.buf = NULL;
	bdev_submit(vdisk, &sio->io);
}

void shadow_drain(struct shadow *sh)
{
	for (unsigned i = 0; i < TURNS_MAX && sh->inflight; i++)
		reactor_run_once(sh->rig->r, SEC_NS);
	if (sh->inflight)
		fail_msg("%u ios never end, seed %llu", sh->inflight,
			 (unsigned long long)sh->rig->seed);
}

void shadow_crash(struct shadow *sh)
{
	sh->clock++;
	for (struct shadow_io *sio = sh->ios; sio; sio = sio->next) {
		if (sio->lost)
			continue;
		sio->lost = true;
		for (unsigned i = 0; i < sio->blocks; i++) {
			struct shadow_block *b = &sh->block[sio->block + i];

			if (sio->io.op == BDEV_WRITE)
				block_written(sh, sio, false, b);
			else
				b->readers--;
		}
	}
}

void shadow_check_all(struct shadow *sh, struct bdev *vdisk)
{
	const unsigned errors = sh->errors;

	for (uint64_t b = 0; b < sh->blocks; b += 32) {
		const uint64_t left = sh->blocks - b;

		shadow_read(sh, vdisk, b, (unsigned)(left < 32 ? left : 32));
		if (sh->inflight >= 16)
			shadow_drain(sh);
	}
	shadow_drain(sh);
	if (sh->errors != errors)
		fail_msg("%u reads failed, seed %llu", sh->errors - errors,
			 (unsigned long long)sh->rig->seed);
}
