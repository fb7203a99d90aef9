/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One owner's life, from open to its death. */
#include "kill.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/bdev/layers.h"
#include "engine/drive.h"

#define IO_MAX_BLOCKS 256u
#define SLOTS_MAX 24u
#define BUSY_TRIES 2500 /* of 2 ms */

struct slot {
	struct io io;
	struct owner *owner;
	uint8_t *buf;
};

struct owner {
	const struct setting *set;
	struct shared *shared;
	struct reactor *r;
	struct rng rng;
	struct drive *drive[DRIVES_MAX];
	struct vdisk_slot member[DRIVES_MAX];
	struct bdev *vdisk, *top;
	struct slot slot[SLOTS_MAX];
	unsigned slots, inflight;
	uint64_t blocks, cursor;
	uint64_t started_ns;
	int away; /* index of a member, -1 */
	bool returning, changing, stopping;
	struct timer chaos;
};

static volatile sig_atomic_t asked_to_stop;

static void on_term(int signal)
{
	(void)signal;
	asked_to_stop = 1;
}

static void give_up(struct owner *o, const char *what, int rc,
		    const struct err *err)
{
	snprintf(o->shared->error, sizeof(o->shared->error), "%s: %s", what,
		 err && err->text[0] ? err->text : strerror(-rc));
	_exit(1);
}

/* ---- members ------------------------------------------------------------ */

static void drives_open(struct owner *o)
{
	struct err err = { 0 };
	char path[128];
	int rc;

	for (unsigned i = 0; i < o->set->drives; i++) {
		snprintf(path, sizeof(path), "%s/%u", o->set->dir, i);
		rc = drive_open(o->r, path, NULL, &o->drive[i], &err);
		if (rc)
			give_up(o, "drive", rc, &err);
	}
}

/*
 * The kernel lets go of a killed owner's files once what it had in flight has
 * ended, which may be later than its parent hears of its death.
 */
static int member_open(struct owner *o, unsigned i, struct bdev **bdev,
		       bool wait)
{
	struct err err = { 0 };
	int rc, tries = wait ? BUSY_TRIES : 1;

	do {
		rc = drive_component_open(o->drive[i], "db1", bdev, &err);
		if (rc == -EBUSY && wait)
			nanosleep(&(struct timespec) { .tv_nsec = 2000000 },
				  NULL);
	} while (rc == -EBUSY && --tries > 0);
	if (!rc && o->set->volatile_cache) {
		struct bdev *child = *bdev;

		rc = bdev_volatile_open(child, rng_u64(&o->rng), bdev, &err);
	}
	if (rc && (rc != -EBUSY || wait))
		give_up(o, "component", rc, &err);
	return rc;
}

static void slot_facts(struct vdisk_slot *s, unsigned i)
{
	snprintf(s->domain, sizeof(s->domain), "n%u", i);
	snprintf(s->drive, sizeof(s->drive), "d0");
	snprintf(s->component, sizeof(s->component), "db1");
}

static void spec_fill(const struct setting *set, struct vdisk_slot *slot,
		      struct vlog_spec *spec)
{
	static const enum raid_level level[] = { RAID_0, RAID_5, RAID_6 };

	for (unsigned i = 0; i < set->drives; i++)
		slot_facts(&slot[i], i);
	*spec = (struct vlog_spec) {
		.cluster = "lab",
		.name = "db1",
		.size_bytes = set->size_bytes,
		.policy = { .raid = set->k == 1 ? RAID_1 : level[set->m],
			    .k = (uint8_t)set->k,
			    .m = (uint8_t)set->m,
			    .codec = (uint8_t)set->codec },
		.tune = set->tune,
		.slot = slot,
		.slots = set->drives,
	};
}

/* ---- load --------------------------------------------------------------- */

static void slot_next(struct slot *s);

static void closed(void *arg)
{
	(void)arg;
	_exit(0);
}

static void stop(struct owner *o)
{
	if (o->inflight || o->returning)
		return;
	timer_cancel(o->r, &o->chaos);
	bdev_close(o->top, closed, o);
}

static void io_failed(struct owner *o, const struct io *io)
{
	static const char *const op[] = { "read", "write", "flush", "trim" };
	const struct verify_head *head = bdev_verify_head(o->top);
	struct vlog_info info;
	struct err err = { 0 };

	if (io->result == -EBADMSG && head->wrong) {
		err_set(&err, -EBADMSG, "%s", head->first);
		give_up(o, "wrong content", -EBADMSG, &err);
	}
	vlog_info(o->vdisk, &info);
	err_set(&err, io->result, "%s at %llu of %u: %s; %s", op[io->op],
		(unsigned long long)io->off, io->len, strerror(-io->result),
		info.reason);
	give_up(o, "io", io->result, &err);
}

static void io_done(struct io *io)
{
	struct slot *s = container_of(io, struct slot, io);
	struct owner *o = s->owner;

	o->inflight--;
	o->shared->done++;
	if (io->result && io->result != -ENOSPC)
		io_failed(o, io);
	if (o->stopping)
		stop(o);
	else
		slot_next(s);
}

static uint32_t draw_blocks(struct rng *rng)
{
	const uint64_t x = rng_below(rng, 100);

	if (x < 55)
		return 1;
	if (x < 88)
		return 1 + (uint32_t)rng_below(rng, 16);
	return 1 + (uint32_t)rng_below(rng, IO_MAX_BLOCKS);
}

static uint64_t draw_block(struct owner *o, uint32_t blocks)
{
	const uint64_t x = rng_below(&o->rng, 10);
	uint64_t at;

	if (x < 6)
		at = rng_below(&o->rng, o->blocks / 8);
	else if (x < 9)
		at = rng_below(&o->rng, o->blocks);
	else
		at = o->cursor;
	if (at + blocks > o->blocks)
		at = o->blocks - blocks;
	o->cursor = (at + blocks) % o->blocks;
	return at;
}

static void slot_next(struct slot *s)
{
	struct owner *o = s->owner;
	const uint64_t what = rng_below(&o->rng, 100);
	const uint32_t blocks = draw_blocks(&o->rng);

	s->io.op = what < 70   ? BDEV_WRITE
		   : what < 90 ? BDEV_READ
		   : what < 97 ? BDEV_TRIM
			       : BDEV_FLUSH;
	s->io.flags = 0;
	s->io.len = s->io.op == BDEV_FLUSH ? 0 : blocks * VERIFY_BLOCK;
	s->io.off = s->io.len ? draw_block(o, blocks) * VERIFY_BLOCK : 0;
	s->io.buf = s->io.op <= BDEV_WRITE ? s->buf : NULL;
	s->io.done = io_done;
	o->inflight++;
	bdev_submit(o->top, &s->io);
}

/* Random bytes in a share of each sector: compresses well, a little, not. */
static void buf_fill(struct owner *o, uint8_t *buf)
{
	for (uint32_t b = 0; b < IO_MAX_BLOCKS; b++) {
		const unsigned share = (unsigned)rng_below(&o->rng, 3) * 256;

		for (uint32_t i = 0; i < VERIFY_BLOCK; i++)
			buf[b * VERIFY_BLOCK + i] =
				i % 512 < share ? (uint8_t)rng_u64(&o->rng) : 0;
	}
}

static void load_start(struct owner *o)
{
	const unsigned depth[] = { 1, 4, SLOTS_MAX };

	o->slots = depth[rng_below(&o->rng, array_len(depth))];
	for (unsigned i = 0; i < o->slots; i++) {
		struct slot *s = &o->slot[i];

		s->owner = o;
		s->buf = reactor_buf_alloc(o->r, IO_MAX_BLOCKS * VERIFY_BLOCK);
		if (!s->buf)
			give_up(o, "memory", -ENOMEM, NULL);
		buf_fill(o, s->buf);
		slot_next(s);
	}
}

/* ---- members that fail and come back, checkpoints ----------------------- */

static void returned(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct owner *o = arg;

	(void)vdisk;
	o->returning = false;
	if (result)
		give_up(o, "return", result, err);
	o->away = -1;
	o->shared->rejoined++;
	if (o->stopping)
		stop(o);
}

static void member_back(struct owner *o)
{
	struct bdev *bdev = NULL;

	if (o->returning || o->stopping ||
	    member_open(o, (unsigned)o->away, &bdev, false))
		return;
	o->returning = true;
	vlog_member_return(o->vdisk, (unsigned)o->away, bdev, returned, o);
}

static void member_fails(struct owner *o)
{
	struct err err = { 0 };
	const unsigned i = (unsigned)rng_below(&o->rng, o->set->drives);
	const int rc = vlog_member_fail(o->vdisk, i, &err);

	if (rc)
		give_up(o, "fail", rc, &err);
	o->away = (int)i;
	o->shared->failed++;
}

static void changed(int result, const struct err *err, struct bdev *vdisk,
		    void *arg)
{
	struct owner *o = arg;

	(void)vdisk;
	o->changing = false;
	/* no room; a member went, or one change is still under way; closed */
	if (result && result != -ENOSPC && result != -EAGAIN &&
	    result != -EBUSY && result != -ECANCELED && result != -EIO)
		give_up(o, "policy", result, err);
}

/* Other stripes, copies in their place, another codec: m stays. */
static void policy_changes(struct owner *o)
{
	const unsigned k = rng_below(&o->rng, 2) ? o->set->k : 1;
	const unsigned m = o->set->m;
	const struct vdisk_spec target = {
		.policy = { .raid = k == 1   ? RAID_1
				    : m == 1 ? RAID_5
					     : RAID_6,
			    .k = (uint8_t)k,
			    .m = (uint8_t)m,
			    .layout = VDISK_LOG,
			    .codec = (uint8_t)rng_below(&o->rng, 3) },
	};

	o->changing = true;
	o->shared->changed++;
	vlog_policy_change(o->vdisk, &target, changed, o);
}

static void chaos(struct timer *timer)
{
	struct owner *o = container_of(timer, struct owner, chaos);
	const uint64_t what = rng_below(&o->rng, 10);
	struct vlog_info info;

	vlog_info(o->vdisk, &info);
	o->shared->checkpoints = info.checkpoints;
	o->shared->cleaned = info.cleaned_segs;
	if (asked_to_stop && !o->stopping) {
		o->stopping = true;
		stop(o);
		return;
	}
	if (what < 2)
		vlog_checkpoint(o->vdisk);
	else if (what < 6 && o->away >= 0)
		member_back(o);
	else if (what == 6 && o->away < 0 && o->set->m)
		member_fails(o);
	else if (what == 7 && o->away < 0 && !o->changing && o->set->m)
		policy_changes(o);
	timer_arm(o->r, timer,
		  reactor_now(o->r) + rng_below(&o->rng, 30 * MSEC_NS));
}

/* ---- the way up --------------------------------------------------------- */

static void swept(void *arg)
{
	struct owner *o = arg;
	const struct verify_head *head = bdev_verify_head(o->top);
	struct err err = { 0 };

	if (head->wrong) {
		err_set(&err, -EBADMSG, "%s", head->first);
		give_up(o, "wrong content", -EBADMSG, &err);
	}
	o->shared->read_ns = reactor_now(o->r) - o->started_ns;
	o->shared->phase = OWNER_LOADED;
	load_start(o);
	o->chaos.fn = chaos;
	timer_arm(o->r, &o->chaos, reactor_now(o->r));
}

static void opened(int result, const struct err *err, struct bdev *vdisk,
		   void *arg)
{
	struct owner *o = arg;
	struct err error = { 0 };
	struct vlog_info info;
	char path[128];
	int rc;

	if (result)
		give_up(o, "open", result, err);
	o->vdisk = vdisk;
	vlog_info(vdisk, &info);
	o->shared->open_ns = reactor_now(o->r) - o->started_ns;
	o->shared->replayed += info.replayed;
	o->shared->degraded += info.state == VDISK_DEGRADED;
	o->started_ns = reactor_now(o->r);
	if (o->away < 0)
		for (unsigned i = 0; i < info.slots; i++)
			if (!info.slot[i].bdev)
				o->away = (int)i;
	rc = vlog_check(vdisk, &error);
	snprintf(path, sizeof(path), "%s/journal", o->set->dir);
	if (!rc)
		rc = bdev_verify_open(vdisk, path, &o->top, &error);
	if (rc)
		give_up(o, "check", rc, &error);
	o->blocks = o->top->limits.size_bytes / VERIFY_BLOCK;
	o->shared->phase = OWNER_READING;
	bdev_verify_sweep(o->top, swept, o);
}

void owner_live(const struct setting *set, uint64_t seed, struct shared *shared)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO,
					   .workers = 2,
					   .seed = seed,
					   .name = "owner" };
	struct owner *o = calloc(1, sizeof(*o));
	struct vlog_spec spec;
	struct err err = { 0 };
	int rc;

	if (!o)
		_exit(1);
	o->set = set;
	o->shared = shared;
	o->away = -1;
	rng_seed(&o->rng, seed);
	signal(SIGTERM, on_term);
	rc = reactor_new(&opts, &o->r, &err);
	if (rc)
		give_up(o, "reactor", rc, &err);
	drives_open(o);
	if (set->m && !rng_below(&o->rng, 4))
		o->away = (int)rng_below(&o->rng, set->drives);
	spec_fill(set, o->member, &spec);
	for (unsigned i = 0; i < set->drives; i++)
		if ((int)i != o->away)
			member_open(o, i, &o->member[i].bdev, true);
	o->started_ns = reactor_now(o->r);
	shared->phase = OWNER_OPENING;
	vlog_open(o->r, &spec, opened, o);
	for (;;)
		reactor_run_once(o->r, SEC_NS);
}

/* ---- made --------------------------------------------------------------- */

static void created(int result, const struct err *err, struct bdev *vdisk,
		    void *arg)
{
	struct owner *o = arg;

	if (result)
		give_up(o, "create", result, err);
	bdev_close(vdisk, closed, o);
}

static void drive_make(struct owner *o, unsigned i, uint64_t bytes)
{
	struct err err = { 0 };
	char path[128];
	int rc = 0;

	snprintf(path, sizeof(path), "%s/%u", o->set->dir, i);
	if (mkdir(path, 0700))
		rc = -errno;
	if (!rc)
		rc = drive_claim(path, "lab", NULL, &err);
	if (!rc)
		rc = drive_open(o->r, path, NULL, &o->drive[i], &err);
	if (!rc)
		rc = drive_component_create(o->drive[i], "db1", bytes, &err);
	if (!rc)
		rc = drive_component_open(o->drive[i], "db1",
					  &o->member[i].bdev, &err);
	if (rc)
		give_up(o, "drive", rc, &err);
}

void owner_make(const struct setting *set, struct shared *shared)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO, .workers = 2 };
	struct owner *o = calloc(1, sizeof(*o));
	struct vlog_spec spec;
	struct err err = { 0 };
	int rc;

	if (!o)
		_exit(1);
	o->set = set;
	o->shared = shared;
	rc = reactor_new(&opts, &o->r, &err);
	if (rc)
		give_up(o, "reactor", rc, &err);
	spec_fill(set, o->member, &spec);
	for (unsigned i = 0; i < set->drives; i++)
		drive_make(o, i, vlog_member_bytes(&spec));
	vlog_create(o->r, &spec, created, o);
	for (;;)
		reactor_run_once(o->r, SEC_NS);
}
