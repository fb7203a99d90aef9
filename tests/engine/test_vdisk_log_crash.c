/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The log layout under crashes, lost drives and rot, seed by seed:
 *   test_vdisk_log_crash [all | FIRST LAST [VERBOSE]]    1 to 400, to 22
 *   test_vdisk_log_crash_plain mutations NAME|all FIRST LAST
 * An oracle knows for each block what was acknowledged and what is in flight;
 * a read must give one of the two, and what was once read after a recovery
 * stays. A violation names the seed and aborts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/wait.h>
#include <unistd.h>

#include "engine/vdisk/log/mut.h"
#include "log_rig.h"

#define LBAS 40
#define IOS 6
#define STEPS 500

struct run_io {
	struct io io;
	struct world *w;
	uint64_t lba;
	uint32_t blocks, version, began;
	uint32_t was[32], might[32]; /* acked and pending as it began */
	bool busy;
	uint8_t buf[32 * 4096];
};

struct world {
	struct rig rig;
	struct rng rng;
	uint64_t seed;
	unsigned m;
	uint32_t acked[LBAS], pending[LBAS]; /* UINT32_MAX: none pending */
	uint32_t zeroed[LBAS]; /* the version that zeros took the place of */
	uint32_t version;
	struct run_io io[IOS];
	bool returning;
	int rot;       /* disk that may be damaged, -1: none */
	uint32_t gone; /* disks that left during this opening */
	unsigned flap;
	bool verbose;
	unsigned crashes, opens, acks, leaves, rots;
};

static struct world w;

static _Noreturn void violation(const char *what, uint64_t a, uint64_t b)
{
	printf("seed %llu: %s (%llu, %llu)\n", (unsigned long long)w.seed, what,
	       (unsigned long long)a, (unsigned long long)b);
	fflush(stdout);
	abort();
}

static uint64_t below(uint64_t n)
{
	return rng_below(&w.rng, n);
}

static bool chance(unsigned per_1000)
{
	return below(1000) < per_1000;
}

/* ---- faults -------------------------------------------------------- */

static unsigned faults(void)
{
	struct vlog_info info = { 0 };
	unsigned count = 0;

	if (w.rig.vd)
		vlog_info(w.rig.vd, &info);
	for (unsigned i = 0; i < w.rig.n; i++)
		count += (w.rig.vd && info.slot[i].state != MEMBER_OK) ||
			 w.rig.disk[i].away || (int)i == w.rot ||
			 /* back, but this opening may have missed it */
			 (w.rig.opening && w.gone >> i & 1) ||
			 /* or it is too late for it */
			 ((w.rig.vd || w.rig.opening) && !w.rig.disk[i].open) ||
			 w.returning;
	return count;
}

static void leave_one(void)
{
	const unsigned i = (unsigned)below(w.rig.n);

	if (faults() >= w.m || w.rig.disk[i].away || (int)i == w.rot)
		return;
	disk_leave(&w.rig.disk[i]);
	w.gone |= 1u << i;
	w.leaves++;
	if (w.verbose)
		printf("  leave %u\n", i);
}

static void return_one(void)
{
	for (unsigned i = 0; i < w.rig.n; i++)
		if (w.rig.disk[i].away && below(2)) {
			disk_return(&w.rig.disk[i]);
			if (w.verbose)
				printf("  return %u\n", i);
			return;
		}
}

/* Damage on one drive, at most m with those away. */
static void rot(void)
{
	struct disk *d;
	uint64_t s, from;

	if (w.rot < 0) {
		const unsigned i = (unsigned)below(w.rig.n);

		if (faults() >= w.m || w.rig.disk[i].away)
			return;
		w.rot = (int)i;
	}
	d = &w.rig.disk[w.rot];
	s = below(d->bytes / SECTOR);
	if (below(2)) /* where there is something */
		s = below(2) ? s % 32
			     : d->bytes / SECTOR - 1 - s % (14 * 3 * 16);
	from = below(d->bytes / SECTOR);
	if (below(2))
		memcpy(d->seen + s * SECTOR, d->seen + from * SECTOR, SECTOR);
	else
		d->seen[s * SECTOR + below(SECTOR)] ^= 1u << below(8);
	memcpy(d->durable + s * SECTOR, d->seen + s * SECTOR, SECTOR);
	w.rots++;
}

/* ---- members that come back ---------------------------------------- */

static void returned(int result, const struct err *err, struct bdev *vd,
		     void *arg)
{
	(void)vd;
	(void)arg;
	w.returning = false;
	if (w.verbose)
		printf("  member back: %d %s\n", result, err ? err->text : "");
}

static void give_back(void)
{
	struct vlog_info info;

	if (!w.rig.vd || w.returning)
		return;
	vlog_info(w.rig.vd, &info);
	if (info.state == VDISK_FAILED)
		return;
	for (unsigned i = 0; i < w.rig.n; i++) {
		struct bdev *b;

		if (info.slot[i].bdev || w.rig.disk[i].away)
			continue;
		b = disk_open(&w.rig.disk[i]);
		if (!b)
			continue;
		w.returning = true;
		vlog_member_return(w.rig.vd, i, b, returned, NULL);
		return;
	}
}

/* ---- load ---------------------------------------------------------- */

static bool allowed(uint64_t lba, uint32_t version)
{
	return version == w.acked[lba] ||
	       (w.pending[lba] != UINT32_MAX && version == w.pending[lba]);
}

/* Any value it had while the read ran. */
static bool allowed_during(const struct run_io *x, uint32_t i, uint32_t v)
{
	const uint64_t lba = x->lba + i;

	if (v == UINT32_MAX)
		return false;
	return allowed(lba, v) || v == x->was[i] || v == x->might[i] ||
	       v > x->began || (!v && w.zeroed[lba] > x->began);
}

static void done(struct io *io)
{
	struct run_io *x = container_of(io, struct run_io, io);

	x->busy = false;
	for (uint32_t i = 0; i < x->blocks; i++) {
		const uint64_t lba = x->lba + i;
		uint32_t v;

		if (io->op == BDEV_READ) {
			if (io->result)
				violation("read failed", lba,
					  (uint64_t)-io->result);
			v = block_version(lba, x->buf + (size_t)i * 4096);
			if (!allowed_during(x, i, v))
				violation("wrong data", lba, v);
			continue;
		}
		if (io->result == -ENOSPC)
			violation("no space", lba, 0);
		if (io->result) /* stopped: old or new */
			continue;
		w.acked[lba] = w.pending[lba];
		w.pending[lba] = UINT32_MAX;
	}
	if (io->op != BDEV_READ)
		w.acks++;
}

static struct run_io *io_free(void)
{
	for (unsigned i = 0; i < IOS; i++)
		if (!w.io[i].busy)
			return &w.io[i];
	return NULL;
}

static bool range_free(uint64_t lba, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks; i++)
		if (w.pending[lba + i] != UINT32_MAX)
			return false;
	return true;
}

static void load(enum bdev_op op)
{
	struct run_io *x = io_free();
	uint32_t blocks = (uint32_t)below(4) + 1;
	uint64_t lba;

	if (!x || !w.rig.vd)
		return;
	if (chance(150))
		blocks = (uint32_t)below(20) + 1; /* may go past the log */
	lba = below(LBAS - blocks + 1);
	if (op != BDEV_READ && !range_free(lba, blocks))
		return;
	x->busy = true;
	x->lba = lba;
	x->blocks = blocks;
	x->began = w.version;
	for (uint32_t i = 0; i < blocks; i++) {
		x->was[i] = w.acked[lba + i];
		x->might[i] = w.pending[lba + i];
	}
	for (uint32_t i = 0; i < blocks && op != BDEV_READ; i++) {
		x->version = ++w.version;
		if (op == BDEV_TRIM || chance(30)) {
			w.zeroed[lba + i] = x->version;
			x->version = 0;
		}
		w.pending[lba + i] = x->version;
		block_make(lba + i, x->version, x->buf + (size_t)i * 4096);
	}
	x->io = (struct io) { .op = (uint8_t)op,
			      .off = lba * 4096,
			      .len = blocks * 4096,
			      .buf = op == BDEV_TRIM ? NULL : x->buf,
			      .done = done };
	bdev_submit(w.rig.vd, &x->io);
}

/* ---- life ---------------------------------------------------------- */

static void crash(void)
{
	rig_crash(&w.rig, below(2));
	w.returning = false;
	for (unsigned i = 0; i < IOS; i++)
		w.io[i].busy = false;
	w.crashes++;
	if (w.verbose)
		printf("  crash\n");
}

static void check(void)
{
	struct err err = { 0 };

	if (vlog_check(w.rig.vd, &err)) {
		printf("%s\n", err.text);
		violation("invariant", 0, 0);
	}
}

static void verify_all(void)
{
	static uint8_t buf[LBAS * 4096];
	const int rc =
		bdev_io_sync(w.rig.vd, BDEV_READ, 0, 0, buf, LBAS * 4096);

	if (rc)
		violation("read after open failed", (uint64_t)-rc, 0);
	for (uint64_t lba = 0; lba < LBAS; lba++) {
		const uint32_t v = block_version(lba, buf + lba * 4096);

		if (!allowed(lba, v))
			violation("wrong after open", lba, v);
		w.acked[lba] = v;
		w.pending[lba] = UINT32_MAX;
	}
}

/* False: a crash came first. */
static bool open_once(void)
{
	const unsigned fuse = (unsigned)below(400);

	w.gone = 0;
	rig_open(&w.rig);
	w.opens++;
	for (unsigned t = 0; !w.rig.over; t++) {
		rig_turn(&w.rig);
		if (t > 20000)
			violation("open does not end", t, 0);
		if (chance(w.flap ? 10 : 2))
			leave_one();
		if (chance(w.flap ? 15 : 4))
			return_one();
		if (w.flap && t == fuse) {
			crash();
			return false;
		}
	}
	if (w.rig.result && w.verbose)
		printf("  open: %s\n", w.rig.err.text);
	if (w.rig.result == -EAGAIN) {
		/* Those that left while it opened count twice: closed bdevs. */
		for (unsigned i = 0; i < w.rig.n; i++)
			if (w.rig.slot[i].bdev)
				bdev_close_sync(w.rig.slot[i].bdev);
		return_one();
		return false;
	}
	if (w.rig.result) {
		printf("%s\n", w.rig.err.text);
		violation("refused", (uint64_t)-w.rig.result, 0);
	}
	return true;
}

static void start(void)
{
	unsigned tries = 0;

	while (!open_once())
		if (++tries > 200)
			violation("cannot be opened", tries, 0);
	/* Reading all must not be disturbed beyond the budget. */
	verify_all();
	check();
}

static bool failed(void)
{
	struct vlog_info info;

	vlog_info(w.rig.vd, &info);
	return info.state == VDISK_FAILED;
}

static void step(void)
{
	if (chance(300))
		load(chance(120) ? BDEV_TRIM : BDEV_WRITE);
	if (chance(150))
		load(BDEV_READ);
	if (chance(w.flap == 1 ? 25 : 6))
		leave_one();
	if (chance(w.flap == 1 ? 40 : 10))
		return_one();
	if (chance(4))
		vlog_checkpoint(w.rig.vd);
	if (w.flap == 2 && chance(20))
		rot();
	give_back();
	rig_turn(&w.rig);
	if (chance(20))
		check();
	if (chance(w.flap ? 15 : 6) || failed()) {
		crash();
		start();
	}
}

static bool idle(void)
{
	for (unsigned i = 0; i < IOS; i++)
		if (w.io[i].busy)
			return false;
	return true;
}

static void run(uint64_t seed, bool verbose)
{
	static const struct {
		unsigned k, m, n;
	} shape[] = { { 1, 1, 3 }, { 2, 1, 3 }, { 2, 1, 4 }, { 4, 1, 5 },
		      { 4, 1, 6 }, { 1, 2, 5 }, { 4, 2, 6 }, { 2, 2, 5 },
		      { 1, 3, 7 }, { 2, 0, 2 }, { 4, 2, 7 } };
	const unsigned s = (unsigned)(seed % array_len(shape));

	memset(&w, 0, sizeof(w));
	w.seed = seed;
	w.verbose = verbose;
	w.rot = -1;
	w.flap = (unsigned)(seed / 7 % 3);
	w.m = shape[s].m;
	rng_seed(&w.rng, seed * 1000003);
	rig_init(&w.rig, seed, shape[s].k, shape[s].m, shape[s].n, 600);
	w.rig.spec.policy.codec = (uint8_t)(seed % 3);
	w.rig.spec.tune.slots = 20;
	w.rig.spec.pace.punch_ms = 1;
	memset(w.pending, 0xff, sizeof(w.pending));
	if (rig_create_sync(&w.rig))
		violation("create", (uint64_t)-w.rig.result, 0);
	for (unsigned i = 0; i < STEPS; i++)
		step();
	for (unsigned i = 0; i < w.rig.n; i++)
		disk_return(&w.rig.disk[i]);
	for (unsigned i = 0; i < 5000 && !idle(); i++) {
		give_back();
		rig_turn(&w.rig);
		if (failed()) {
			crash();
			start();
		}
	}
	if (!idle())
		violation("writes never end", 0, 0);
	check();
	if (seed % 2) {
		for (unsigned i = 0; i < 2000 && w.returning; i++)
			rig_turn(&w.rig);
		rig_close_sync(&w.rig);
	} else {
		crash();
	}
	start();
	crash();
	rig_fini(&w.rig);
}

#ifdef IODECK_MUTATIONS
/*
 * Planted faults and the seeds within which one must be noticed: a violation,
 * a refusal within the budget, or an assertion. 0: rare, shown by longer runs
 * of the simulator alone.
 */
#define SEEDS 10u

static bool violated(enum vlog_mut mut, uint64_t first)
{
	const pid_t pid = fork();
	int status = 0;

	if (!pid) {
		vlog_mut = mut;
		if (!freopen("/dev/null", "w", stdout) ||
		    !freopen("/dev/null", "w", stderr))
			_exit(0);
		alarm(30);
		for (uint64_t s = first; s < first + SEEDS; s++)
			run(s, false);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* The last of the ten seeds of which one notices; 0: none did. Only where all
 * is well without. */
static uint64_t noticed_at(enum vlog_mut mut, uint64_t first, uint64_t last)
{
	for (; first <= last; first += SEEDS)
		if (violated(mut, first) && !violated(MUT_NONE, first))
			return first + SEEDS - 1;
	return 0;
}

static int mutations_run(const char *one, uint64_t first, uint64_t last)
{
	int missed = 0;

	for (unsigned i = MUT_NONE + 1; i < MUT_COUNT; i++) {
		uint64_t at;

		if (strcmp(one, "all") && strcmp(one, vlog_mut_name[i]))
			continue;
		at = noticed_at(i, first, last);
		printf("%-16s %snoticed by seed %llu\n", vlog_mut_name[i],
		       at ? "" : "not ", (unsigned long long)(at ? at : last));
		fflush(stdout);
		missed += !at;
	}
	return missed ? 1 : 0;
}
#endif

int main(int argc, char **argv)
{
	const uint64_t first = argc > 2 ? strtoull(argv[1], NULL, 10) : 1;
	const uint64_t last = argc > 2   ? strtoull(argv[2], NULL, 10)
			      : argc > 1 ? 400
					 : 22;
	uint64_t crashes = 0, opens = 0, acks = 0, leaves = 0, rots = 0;

#ifdef IODECK_MUTATIONS
	if (argc == 5 && !strcmp(argv[1], "mutations"))
		return mutations_run(argv[2], strtoull(argv[3], NULL, 10),
				     strtoull(argv[4], NULL, 10));
#endif
	for (uint64_t seed = first; seed <= last; seed++) {
		if (argc > 2) { /* to go on from, if it dies */
			fprintf(stderr, "at seed %llu\n",
				(unsigned long long)seed);
		}
		run(seed, argc > 3);
		crashes += w.crashes;
		opens += w.opens;
		acks += w.acks;
		leaves += w.leaves;
		rots += w.rots;
	}
	printf("%llu seeds: %llu acks, %llu crashes, %llu opens, %llu leaves, "
	       "%llu damaged sectors\n",
	       (unsigned long long)(last - first + 1), (unsigned long long)acks,
	       (unsigned long long)crashes, (unsigned long long)opens,
	       (unsigned long long)leaves, (unsigned long long)rots);
	return 0;
}
