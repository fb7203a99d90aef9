/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each I/O takes a random time, so they end in any order. */
#include "log_rig.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct disk_bdev {
	struct bdev bdev;
	struct disk *disk;
	bool closing;
};

/* ---- memory -------------------------------------------------------- */

/*
 * Thousands of rigs follow one another, each with hundreds of MiB of drives.
 * Fresh pages for each took more time than all else: what one gives back goes
 * to the next, in huge pages where they are to be had.
 */
#define HUGE_PAGE ((uint64_t)2 << 20)

static struct room {
	uint8_t *base;
	uint64_t bytes;
	bool used;
} rooms[4 * DISKS_MAX];

static uint8_t *room_map(uint64_t bytes)
{
	uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		abort();
	madvise(base, bytes, MADV_HUGEPAGE);
	return base;
}

/* Zeros. */
static uint8_t *room_get(uint64_t bytes)
{
	struct room *best = NULL, *none = NULL;

	for (unsigned i = 0; i < array_len(rooms); i++) {
		struct room *m = &rooms[i];

		if (!m->base)
			none = none ? none : m;
		else if (!m->used && m->bytes >= bytes &&
			 (!best || m->bytes < best->bytes))
			best = m;
	}
	if (best) {
		memset(best->base, 0, bytes);
	} else if ((best = none)) {
		best->bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
		best->base = room_map(best->bytes);
	} else {
		abort();
	}
	best->used = true;
	return best->base;
}

/* One of another size stays, up to as many as there may be. */
static void room_put(const uint8_t *base)
{
	unsigned count = 0;

	for (unsigned i = 0; i < array_len(rooms); i++)
		count += rooms[i].base != NULL;
	for (unsigned i = 0; i < array_len(rooms); i++) {
		if (rooms[i].base != base)
			continue;
		rooms[i].used = false;
		if (count <= 2 * DISKS_MAX)
			return;
		munmap(rooms[i].base, rooms[i].bytes);
		rooms[i].base = NULL;
	}
}

/* ---- drives -------------------------------------------------------- */

static void sectors_write(struct disk *d, const struct io *io, bool durable,
			  bool partly)
{
	if (!partly) {
		const uint64_t s = io->off / SECTOR, count = io->len / SECTOR;

		memcpy(d->seen + io->off, io->buf, io->len);
		if (durable)
			memcpy(d->durable + io->off, io->buf, io->len);
		memset(d->dirty + s, !durable, count);
		memset(d->bad + s, 0, count);
		return;
	}
	for (uint32_t at = 0; at < io->len; at += SECTOR) {
		const uint64_t off = io->off + at;

		if (rng_below(&d->rig->rng, 2))
			continue;
		memcpy(d->seen + off, (uint8_t *)io->buf + at, SECTOR);
		if (durable)
			memcpy(d->durable + off, d->seen + off, SECTOR);
		d->dirty[off / SECTOR] = !durable;
		d->bad[off / SECTOR] = 0;
	}
}

/* The first sector from there that is not durable; their number: none is. */
static uint64_t dirty_next(const struct disk *d, uint64_t s)
{
	const uint64_t sectors = d->bytes / SECTOR;
	const uint8_t *p = memchr(d->dirty + s, 1, sectors - s);

	return p ? (uint64_t)(p - d->dirty) : sectors;
}

static void disk_flush(struct disk *d)
{
	for (uint64_t s = dirty_next(d, 0); s < d->bytes / SECTOR;
	     s = dirty_next(d, s)) {
		memcpy(d->durable + s * SECTOR, d->seen + s * SECTOR, SECTOR);
		d->dirty[s] = 0;
	}
}

static void disk_io_unlink(struct disk *d, struct disk_io *q)
{
	struct disk_io **at = &d->queue;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
}

static void disk_close_end(struct disk_bdev *b)
{
	if (!b->closing || b->disk->queue)
		return;
	b->disk->open = NULL;
	bdev_closed(&b->bdev);
}

static void disk_io_fired(struct timer *t)
{
	struct disk_io *q = container_of(t, struct disk_io, timer);
	struct disk_bdev *b = q->d;
	struct disk *d = b->disk;
	struct io *io = q->io;
	int result = 0;

	if (d->stuck) /* until disk_unstick() */
		return;
	disk_io_unlink(d, q);
	free(q);
	if (d->fail) {
		result = d->fail;
	} else if (io->op == BDEV_READ && !d->away &&
		   memchr(d->bad + io->off / SECTOR, 1, io->len / SECTOR)) {
		result = -EIO;
	} else if (io->op == BDEV_READ && !d->away &&
		   d->moody[io->off / SECTOR]) {
		d->moody[io->off / SECTOR]--;
		result = -EIO;
	} else if (d->away) {
		if (io->op == BDEV_WRITE && rng_below(&d->rig->rng, 3) == 0)
			sectors_write(d, io, true, true);
		result = -ENODEV;
	} else if (io->op == BDEV_WRITE) {
		sectors_write(d, io, io->flags & BDEV_FUA, false);
		d->writes++;
	} else if (io->op == BDEV_READ) {
		memcpy(io->buf, d->seen + io->off, io->len);
		d->reads++;
	} else if (io->op == BDEV_FLUSH) {
		disk_flush(d);
	} else if (io->op == BDEV_TRIM) {
		memset(d->seen + io->off, 0, io->len);
		memset(d->durable + io->off, 0, io->len);
		memset(d->dirty + io->off / SECTOR, 0, io->len / SECTOR);
		d->trimmed += io->len;
	}
	bdev_complete(io, result);
	disk_close_end(b);
}

static void disk_submit(struct bdev *bdev, struct io *io)
{
	struct disk_bdev *b = container_of(bdev, struct disk_bdev, bdev);
	struct disk *d = b->disk;
	struct disk_io *q;

	if (d->rig->dead)
		return; /* swallowed */
	q = calloc(1, sizeof(*q));
	q->io = io;
	q->d = b;
	q->timer.fn = disk_io_fired;
	q->next = d->queue;
	d->queue = q;
	timer_arm(d->rig->r, &q->timer,
		  reactor_now(d->rig->r) +
			  (1000 + rng_below(&d->rig->rng, 100000)) *
				  (d->slow ? d->slow : 1));
}

static void disk_close(struct bdev *bdev)
{
	struct disk_bdev *b = container_of(bdev, struct disk_bdev, bdev);

	b->closing = true;
	if (b->disk->queue)
		return;
	b->disk->open = NULL;
	bdev_closed(bdev);
}

static void *longer(void *p, size_t was, size_t is)
{
	uint8_t *q = realloc(p, is);

	if (!q)
		abort();
	memset(q + was, 0, is - was);
	return q;
}

static uint8_t *room_longer(uint8_t *p, uint64_t was, uint64_t is)
{
	uint8_t *q = room_get(is);

	memcpy(q, p, was);
	room_put(p);
	return q;
}

static int disk_grow(struct bdev *bdev, uint64_t bytes)
{
	struct disk *d = container_of(bdev, struct disk_bdev, bdev)->disk;
	const uint64_t was = d->bytes;

	if (!d->rig->growable)
		return -ENOTSUP;
	d->seen = room_longer(d->seen, was, bytes);
	d->durable = room_longer(d->durable, was, bytes);
	d->dirty = longer(d->dirty, was / SECTOR, bytes / SECTOR);
	d->bad = longer(d->bad, was / SECTOR, bytes / SECTOR);
	d->moody = longer(d->moody, was / SECTOR, bytes / SECTOR);
	d->bytes = bdev->limits.size_bytes = bytes;
	return 0;
}

static const struct bdev_ops disk_ops = {
	.kind = "disk",
	.submit = disk_submit,
	.close = disk_close,
	.grow = disk_grow,
};

struct bdev *disk_open(struct disk *d)
{
	struct disk_bdev *b;
	char name[32];

	if (d->away || d->open)
		return NULL;
	b = calloc(1, sizeof(*b));
	snprintf(name, sizeof(name), "disk%u", (unsigned)(d - d->rig->disk));
	bdev_init(&b->bdev, &disk_ops, d->rig->r, name);
	b->bdev.limits = (struct bdev_limits) {
		.size_bytes = d->bytes,
		.block_bytes =
			d->rig->block_bytes ? d->rig->block_bytes : SECTOR,
		.phys_bytes = SECTOR,
		.align_bytes = 1,
		.io_max_bytes = 1 << 20,
		.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.trim_zeroes = true,
	};
	b->disk = d;
	d->open = b;
	return &b->bdev;
}

void disk_leave(struct disk *d)
{
	d->away = true;
}

void disk_return(struct disk *d)
{
	d->away = false;
}

void disk_unstick(struct disk *d)
{
	d->stuck = false;
	for (struct disk_io *q = d->queue; q; q = q->next)
		if (!timer_armed(&q->timer))
			timer_arm(d->rig->r, &q->timer, 0);
}

/* ---- the rig ------------------------------------------------------- */

void rig_init(struct rig *rig, uint64_t seed, unsigned k, unsigned m,
	      unsigned n, uint64_t blocks)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = seed };

	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	memset(rig, 0, sizeof(*rig));
	rng_seed(&rig->rng, seed);
	if (reactor_new(&opts, &rig->r, &rig->err))
		abort();
	rig->n = n;
	rig->spec = (struct vlog_spec) {
		.cluster = "c",
		.name = "v",
		.size_bytes = blocks * 4096,
		.policy = { .raid = RAID_5, .k = (uint8_t)k, .m = (uint8_t)m },
		.tune = { .zone_bytes = 272 << 10,
			  .zones = 4,
			  .unit_bytes = 16 << 10,
			  .stripes = 3,
			  .buffer_bytes = (k < 2 ? 2 : k) * 64 << 10,
			  .slots = 14 },
		.slot = rig->slot,
		.slots = n,
	};
	for (unsigned i = 0; i < DISKS_MAX; i++)
		snprintf(rig->slot[i].domain, sizeof(rig->slot[i].domain),
			 "n%u", i);
}

unsigned rig_disk_add(struct rig *rig, uint64_t bytes)
{
	struct disk *d = &rig->disk[rig->disks];

	d->rig = rig;
	d->bytes = bytes;
	d->seen = room_get(bytes);
	d->durable = room_get(bytes);
	d->dirty = calloc(1, bytes / SECTOR);
	d->bad = calloc(1, bytes / SECTOR);
	d->moody = calloc(1, bytes / SECTOR);
	return rig->disks++;
}

static void disks_make(struct rig *rig)
{
	const uint64_t bytes = vlog_member_bytes(&rig->spec);

	for (unsigned i = 0; i < rig->n; i++)
		rig_disk_add(rig, bytes);
}

void rig_fini(struct rig *rig)
{
	for (unsigned i = 0; i < rig->disks; i++) {
		room_put(rig->disk[i].seen);
		room_put(rig->disk[i].durable);
		free(rig->disk[i].dirty);
		free(rig->disk[i].bad);
		free(rig->disk[i].moody);
	}
	reactor_free(rig->r);
}

static void opened(int result, const struct err *err, struct bdev *vd,
		   void *arg)
{
	struct rig *rig = arg;

	rig->opening = NULL;
	rig->result = result;
	if (result)
		rig->err = *err;
	rig->vd = vd;
	rig->over = true;
}

static void slots_open(struct rig *rig)
{
	for (unsigned i = 0; i < rig->disks; i++)
		rig->slot[i].bdev = disk_open(&rig->disk[i]);
	rig->spec.slots = rig->disks;
	rig->over = false;
}

void rig_create(struct rig *rig)
{
	disks_make(rig);
	slots_open(rig);
	rig->opening = vlog_create(rig->r, &rig->spec, opened, rig);
}

void rig_open(struct rig *rig)
{
	slots_open(rig);
	rig->opening = vlog_open(rig->r, &rig->spec, opened, rig);
}

bool rig_turn(struct rig *rig)
{
	return reactor_run_once(rig->r, 10 * MSEC_NS) > 0;
}

int rig_wait(struct rig *rig)
{
	unsigned idle = 0;

	while (!rig->over && idle < 3000)
		idle = rig_turn(rig) ? 0 : idle + 1;
	if (!rig->over)
		return -ETIMEDOUT;
	return rig->result;
}

int rig_create_sync(struct rig *rig)
{
	rig_create(rig);
	return rig_wait(rig);
}

int rig_open_sync(struct rig *rig)
{
	rig_open(rig);
	return rig_wait(rig);
}

void rig_close_sync(struct rig *rig)
{
	bdev_close_sync(rig->vd);
	rig->vd = NULL;
}

static void disk_crash(struct disk *d, bool power)
{
	struct disk_io *q;

	while ((q = d->queue)) {
		d->queue = q->next;
		timer_cancel(d->rig->r, &q->timer);
		if (q->io->op == BDEV_WRITE && !d->away)
			sectors_write(d, q->io, false, true);
		free(q);
	}
	for (uint64_t s = power ? dirty_next(d, 0) : d->bytes / SECTOR;
	     s < d->bytes / SECTOR; s = dirty_next(d, s)) {
		d->dirty[s] = 0;
		if (rng_below(&d->rig->rng, 2))
			memcpy(d->durable + s * SECTOR, d->seen + s * SECTOR,
			       SECTOR);
		memcpy(d->seen + s * SECTOR, d->durable + s * SECTOR, SECTOR);
	}
	free(d->open);
	d->open = NULL;
}

void rig_crash(struct rig *rig, bool power)
{
	rig->dead = true;
	for (unsigned i = 0; i < rig->disks; i++) {
		struct disk *d = &rig->disk[i];

		for (struct disk_io *q = d->queue; q; q = q->next)
			timer_cancel(rig->r, &q->timer);
	}
	while (reactor_run_once(rig->r, 0))
		;
	/* What was in flight lies in the owner's buffers: first the drives. */
	for (unsigned i = 0; i < rig->disks; i++)
		disk_crash(&rig->disk[i], power);
	if (rig->vd)
		vlog_abandon(rig->vd);
	vlog_opening_abandon(rig->opening);
	rig->vd = NULL;
	rig->opening = NULL;
	rig->dead = false;
}

/* ---- a life --------------------------------------------------------- */

static void given_back(int result, const struct err *err, struct bdev *vd,
		       void *arg)
{
	struct rig *rig = arg;

	(void)vd;
	rig->result = result;
	if (result)
		rig->err = *err;
	rig->over = true;
}

void rig_give_back_begin(struct rig *rig, unsigned index)
{
	struct bdev *b = disk_open(&rig->disk[index]);

	id_assert(b);
	rig->over = false;
	vlog_member_return(rig->vd, index, b, given_back, rig);
}

int rig_give_back(struct rig *rig, unsigned index)
{
	rig_give_back_begin(rig, index);
	return rig_wait(rig);
}

void rig_run(struct rig *rig, uint64_t ns)
{
	const uint64_t end = reactor_now(rig->r) + ns;

	while (reactor_now(rig->r) < end)
		rig_turn(rig);
}

void rig_stop(struct rig *rig, uint64_t ns)
{
	reactor_sim_stop(rig->r, ns);
	for (unsigned i = 0; i < rig->disks; i++)
		for (struct disk_io *q = rig->disk[i].queue; q; q = q->next)
			if (timer_armed(&q->timer))
				timer_arm(rig->r, &q->timer,
					  q->timer.deadline_ns + ns);
}

void rig_until(struct rig *rig, enum vdisk_state state, uint64_t ns)
{
	const uint64_t end = reactor_now(rig->r) + ns;
	struct vlog_info info;

	do {
		rig_turn(rig);
		vlog_info(rig->vd, &info);
		if (info.state == state && !info.rebuild_left_bytes)
			return;
	} while (reactor_now(rig->r) < end);
	printf("%s, %llu bytes left, %s; waited for %s\n",
	       vdisk_state_name(info.state),
	       (unsigned long long)info.rebuild_left_bytes, info.reason,
	       vdisk_state_name(state));
	abort();
}

int rig_put(struct rig *rig, uint64_t lba, uint32_t version, uint32_t blocks)
{
	uint8_t *buf = malloc((size_t)blocks * 4096);
	int rc;

	for (uint32_t i = 0; i < blocks; i++)
		block_make(lba + i, version, buf + (size_t)i * 4096);
	rc = bdev_io_sync(rig->vd, BDEV_WRITE, 0, lba * 4096, buf,
			  blocks * 4096);
	free(buf);
	return rc;
}

int rig_expect(struct rig *rig, uint64_t lba, uint32_t version, uint32_t blocks)
{
	uint8_t *buf = malloc((size_t)blocks * 4096);
	int rc = bdev_io_sync(rig->vd, BDEV_READ, 0, lba * 4096, buf,
			      blocks * 4096);

	for (uint32_t i = 0; i < blocks && !rc; i++)
		if (block_version(lba + i, buf + (size_t)i * 4096) != version)
			rc = 1;
	free(buf);
	return rc;
}

void rig_check(struct rig *rig)
{
	struct err err = { 0 };

	if (!vlog_check(rig->vd, &err))
		return;
	printf("%s\n", err.text);
	abort();
}

/* ---- what is changed in service -------------------------------------- */

static void fail_unless(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s\n", what);
	abort();
}

void rig_answered(int result, const struct err *err, struct bdev *vd, void *arg)
{
	struct answer *a = arg;

	(void)vd;
	a->count++;
	a->result = result;
	if (result)
		a->err = *err;
}

void rig_turns(struct rig *rig, unsigned n)
{
	while (n--)
		rig_turn(rig);
}

void rig_wait_for(struct rig *rig, const struct answer *a, unsigned count)
{
	for (unsigned i = 0; a->count < count; i++) {
		fail_unless(i < 20000, "no answer comes");
		rig_turn(rig);
	}
}

uint32_t rig_version(uint64_t lba)
{
	return (uint32_t)(lba * 7 % 50 + 1);
}

void rig_fill(struct rig *rig)
{
	uint8_t *buf = malloc((size_t)RIG_BLOCKS * 4096);

	for (uint64_t lba = 0; lba < RIG_BLOCKS; lba++)
		block_make(lba, rig_version(lba), buf + lba * 4096);
	for (uint64_t lba = 0; lba < RIG_BLOCKS; lba += 3)
		fail_unless(!bdev_io_sync(rig->vd, BDEV_WRITE, 0, lba * 4096,
					  buf + lba * 4096, 3 * 4096),
			    "a write fails");
	free(buf);
}

void rig_expect_all(struct rig *rig)
{
	uint8_t *buf = malloc((size_t)RIG_BLOCKS * 4096);

	fail_unless(
		!bdev_io_sync(rig->vd, BDEV_READ, 0, 0, buf, RIG_BLOCKS * 4096),
		"a read fails");
	for (uint64_t lba = 0; lba < RIG_BLOCKS; lba++)
		fail_unless(block_version(lba, buf + lba * 4096) ==
				    rig_version(lba),
			    "not what was written");
	free(buf);
	rig_check(rig);
}

void rig_reopen(struct rig *rig)
{
	fail_unless(!rig_open_sync(rig), rig->err.text);
}

void rig_end(struct rig *rig)
{
	if (rig->vd)
		rig_close_sync(rig);
	rig_fini(rig);
}

/* ---- content ------------------------------------------------------- */

void block_make(uint64_t lba, uint32_t version, uint8_t *block)
{
	const uint64_t stamp = lba << 32 | version;
	struct rng rng;

	memset(block, 0, 4096);
	if (!version)
		return;
	rng_seed(&rng, stamp);
	for (unsigned at = 0; at < 4096; at += 8) {
		uint64_t x = stamp;

		/* Some compress, some do not, some a little. */
		if (at % 512 &&
		    (version % 3 == 0 || (version % 3 == 1 && at > 1500)))
			x = rng_u64(&rng);
		memcpy(block + at, &x, 8);
	}
}

uint32_t block_version(uint64_t lba, const uint8_t *block)
{
	uint8_t want[4096];
	uint64_t stamp;

	memcpy(&stamp, block, 8);
	if (stamp && stamp >> 32 != lba)
		return UINT32_MAX;
	block_make(lba, (uint32_t)stamp, want);
	return memcmp(block, want, 4096) ? UINT32_MAX : (uint32_t)stamp;
}
