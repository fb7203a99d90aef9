/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench_vdisk_cpu: what vDisks cost the processor. The drives are memory, so
 * nothing is waited for: what is left is copying, compressing, checksums,
 * parity and the state machines themselves. One thread does all, user and
 * drives too; IOPS are for a second of its CPU time.
 *
 * For each policy and layout, in one run on the same memory: first the bare
 * drives, then the vDisk made of them, so that both meet the same noise. A
 * figure is the median of ten slices; the quickest, which is the one least
 * disturbed by others on the host, is printed beside it. All memory is touched
 * before anything is measured, and every vDisk has been filled once by then.
 *
 *   us       CPU microseconds an I/O
 *   of bare  its IOPS a core by those of the bare drives, same I/O
 *   written  bytes written to drives by bytes written by the user, by cause
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/bdev/mem.h"
#include "engine/load/content.h"
#include "engine/vdisk/log/log.h"

#define DEPTH_MAX 512
#define SLICES 10
#define BLOCK 4096u
#define BIG (1024u * 1024)
#define DRIVES_MAX 8

struct kind { /* of I/O */
	const char *name;
	double reads;
	uint32_t len;
	bool random, small_span; /* of what the buffer holds */
	bool lend;               /* BDEV_LEND: what is read is not copied */
};

static const struct kind kinds[] = {
	{ "write 4k", 0, BLOCK, true, false, false },
	{ "read 4k", 1, BLOCK, true, false, false },
	{ "70/30 4k", 0.7, BLOCK, true, false, false },
	{ "write 1M seq", 0, BIG, false, false, false },
	{ "read 1M seq", 1, BIG, false, false, false },
	{ "lent 4k", 1, BLOCK, true, false, true },
	{ "rewrite 4k", 0, BLOCK, true, true, false },
	{ "read 4k new", 1, BLOCK, true, true, false },
};
enum {
	WRITE_4K,
	READ_4K,
	MIXED_4K,
	WRITE_1M,
	READ_1M,
	LENT_4K,
	REWRITE,
	READ_NEW,
};
#define SMALL_SPAN (12 * MIB) /* stays below what is destaged */

struct policy {
	const char *name;
	enum raid_level raid;
	uint8_t k, m, drives;
};

static const struct policy policies[] = {
	{ "RAID-6 4+2", RAID_6, 4, 2, 6 }, { "RAID-5 4+1", RAID_5, 4, 1, 6 },
	{ "RAID-5 2+1", RAID_5, 2, 1, 4 }, { "RAID-1 1+1", RAID_1, 1, 1, 4 },
	{ "RAID-1 1+2", RAID_1, 1, 2, 6 },
};

struct result {
	double us, best; /* CPU; of the median and of the quickest slice */
	double of_bare;  /* by slices of bare drives in between; 0: none */
};

struct bench {
	struct reactor *r;
	struct bdev *drive[DRIVES_MAX];
	unsigned drives;
	struct bdev *vdisk; /* NULL: the bare drives are asked */
	struct rng rng;
	struct content content;
	const struct kind *kind;
	uint64_t span, bare_span, at, ops;
	bool stop;
	unsigned inflight;
	uint8_t *buf;
	struct io io[DEPTH_MAX];
	struct result bare[array_len(kinds)];
	/* options */
	double seconds;
	uint64_t size;
	const char *only_policy, *only_kind, *only_layout, *only_codec;
	unsigned depth;
	bool compressible, random;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_vdisk_cpu: %s: %s\n", what, why);
	exit(1);
}

static double cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- the shortest user there can be -------------------------------- */

static void next(struct bench *b, struct io *io)
{
	const struct kind *k = b->kind;
	struct bdev *to = b->vdisk;

	io->len = k->len;
	io->buf = b->buf + (size_t)(io - b->io) * k->len;
	io->op = rng_unit(&b->rng) <= k->reads ? BDEV_READ : BDEV_WRITE;
	if (io->op == BDEV_WRITE)
		content_stamp(&b->content, io->buf, io->len);
	if (!to)
		to = b->drive[rng_below(&b->rng, b->drives)];
	io->flags = k->lend && to->limits.can_lend ? BDEV_LEND : 0;
	if (k->random) {
		io->off = rng_below(&b->rng, b->span / k->len) * k->len;
	} else {
		io->off = b->at;
		b->at = (b->at + k->len) % (b->span / k->len * k->len);
	}
	b->inflight++;
	bdev_submit(to, io);
}

static void done(struct io *io)
{
	struct bench *b = io->arg;

	if (io->result)
		die(b->kind->name, strerror(-io->result));
	b->inflight--;
	b->ops++;
	if (!b->stop)
		next(b, io);
}

static void turn(struct bench *b, double cpu_seconds)
{
	const double end = cpu_now() + cpu_seconds;

	do {
		for (unsigned i = 0; i < 100; i++)
			reactor_run_once(b->r, UINT64_MAX);
	} while (cpu_now() < end);
}

static int double_cmp(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void load_begin(struct bench *b, unsigned depth)
{
	b->stop = false;
	b->at = 0;
	for (unsigned i = 0; i < depth; i++) {
		b->io[i] = (struct io) { .done = done, .arg = b };
		next(b, &b->io[i]);
	}
}

static void load_end(struct bench *b)
{
	b->stop = true;
	while (b->inflight)
		reactor_run_once(b->r, UINT64_MAX);
}

static double slice_run(struct bench *b)
{
	const uint64_t ops = b->ops;
	const double from = cpu_now();

	turn(b, b->seconds / SLICES);
	return (cpu_now() - from) / (double)(b->ops - ops) * 1e6;
}

/* The same of its drives, between two slices; they are but read. */
static double bare_slice_run(struct bench *b, unsigned depth)
{
	struct bdev *vdisk = b->vdisk;
	const uint64_t span = b->span;
	double us;

	load_end(b);
	b->vdisk = NULL;
	b->span = b->bare_span;
	load_begin(b, depth);
	turn(b, b->seconds / SLICES / 4);
	us = slice_run(b);
	load_end(b);
	b->vdisk = vdisk;
	b->span = span;
	load_begin(b, depth);
	turn(b, b->seconds / SLICES / 4);
	return us;
}

static struct result load_run(struct bench *b, const struct kind *kind,
			      unsigned depth)
{
	const bool paired = b->vdisk && kind->reads >= 1;
	double us[SLICES], share[SLICES];

	b->kind = kind;
	load_begin(b, depth);
	turn(b, b->seconds / SLICES * 3);
	for (unsigned i = 0; i < SLICES; i++) {
		us[i] = slice_run(b);
		share[i] = paired ? bare_slice_run(b, depth) / us[i] : 0;
	}
	load_end(b);
	qsort(us, SLICES, sizeof(*us), double_cmp);
	qsort(share, SLICES, sizeof(*share), double_cmp);
	return (struct result) { us[SLICES / 2], us[0], share[SLICES / 2] };
}

/* ---- what is measured ---------------------------------------------- */

static unsigned depth_of(const struct bench *b, const struct kind *kind,
			 unsigned depth)
{
	const unsigned most = DEPTH_MAX * BLOCK / kind->len;

	if (b->depth)
		depth = b->depth;
	return depth < most ? depth : kind->len == BIG ? 2 : most;
}

static bool named(const char *only, const char *name)
{
	return !only || strstr(name, only);
}

/* The whole name of one means that one. */
static bool kind_named(const struct bench *b, const struct kind *kind)
{
	for (unsigned i = 0; b->only_kind && i < array_len(kinds); i++)
		if (!strcmp(b->only_kind, kinds[i].name))
			return kind == &kinds[i];
	return named(b->only_kind, kind->name);
}

static void drives_open(struct bench *b, unsigned drives, uint64_t bytes)
{
	b->drives = drives;
	for (unsigned i = 0; i < drives; i++) {
		struct err err;

		if (bdev_mem_open(b->r, "mem", bytes, BLOCK, &b->drive[i],
				  &err))
			die("mem", err.text);
		for (uint64_t at = 0; at + BIG <= bytes; at += BIG)
			bdev_io_sync(b->drive[i], BDEV_WRITE, 0, at, b->buf,
				     BIG);
	}
}

static void bare_run(struct bench *b, uint64_t bytes)
{
	b->vdisk = NULL;
	b->span = b->bare_span =
		bytes < b->size / b->drives ? bytes : b->size / b->drives;
	for (unsigned i = 0; i <= READ_1M; i++) {
		const struct kind *k = &kinds[i];

		if (!kind_named(b, k))
			continue;
		b->bare[i] = load_run(b, k, depth_of(b, k, 128));
		printf("%-11s %-8s %-5s %-7s %-13s %4u %8.1f %8.3f %8.3f\n",
		       "bare drives", "-", "-", "-", k->name,
		       depth_of(b, k, 128), 1e3 / b->bare[i].us, b->bare[i].us,
		       b->bare[i].best);
	}
	b->bare[REWRITE] = b->bare[WRITE_4K];
}

struct opened {
	bool over;
	int result;
	struct err err;
	struct bdev *vdisk;
};

static void opened(int result, const struct err *err, struct bdev *vdisk,
		   void *arg)
{
	struct opened *o = arg;

	o->result = result;
	if (err)
		o->err = *err;
	o->vdisk = vdisk;
	o->over = true;
}

struct config {
	const struct policy *policy;
	bool log;
	enum vdisk_codec codec;
	double ratio;
};

static struct vlog_spec spec_of(const struct bench *b, const struct config *c,
				struct vdisk_slot *slot)
{
	struct vlog_spec s = {
		.name = "bench",
		.size_bytes = b->size,
		.policy = { .raid = c->policy->raid,
			    .k = c->policy->k,
			    .m = c->policy->m,
			    .stripe_unit_bytes = 64 * KIB,
			    .codec = (uint8_t)c->codec },
		.slot = slot,
		.slots = c->policy->drives,
	};

	for (unsigned i = 0; slot && i < s.slots; i++) {
		snprintf(slot[i].domain, sizeof(slot[i].domain), "n%u", i);
		slot[i].bdev = b->drive[i];
	}
	return s;
}

static void vdisk_make(struct bench *b, const struct config *c)
{
	struct vdisk_slot slot[DRIVES_MAX] = { 0 };
	const struct vlog_spec s = spec_of(b, c, slot);
	const struct vdisk_spec in_place = {
		.name = s.name,
		.size_bytes = s.size_bytes,
		.policy = s.policy,
		.slot = slot,
		.slots = s.slots,
	};
	struct opened o = { 0 };

	if (c->log)
		vlog_create(b->r, &s, opened, &o);
	else
		vdisk_create(b->r, &in_place, opened, &o);
	while (!o.over)
		reactor_run_once(b->r, UINT64_MAX);
	if (o.result)
		die(c->policy->name, o.err.text);
	b->vdisk = o.vdisk;
}

static void fill(struct bench *b)
{
	static const struct kind seq = { .name = "fill", .len = BLOCK };

	b->kind = &seq;
	b->at = 0;
	b->ops = 0;
	b->stop = false;
	for (unsigned i = 0; i < 64; i++) {
		b->io[i] = (struct io) { .buf = b->buf + (size_t)i * BLOCK,
					 .done = done,
					 .arg = b };
		next(b, &b->io[i]);
	}
	while (b->ops < b->span / BLOCK)
		reactor_run_once(b->r, UINT64_MAX);
	b->stop = true;
	while (b->inflight)
		reactor_run_once(b->r, UINT64_MAX);
}

struct written {
	double user, all, log, destage, bypass, clean, snap;
};

static struct written written_now(const struct bench *b, bool log)
{
	struct written w = { 0 };
	struct vlog_info info;
	struct bdev_stats s;

	for (unsigned i = 0; i < b->drives; i++) {
		bdev_stats(b->drive[i], &s);
		w.all += (double)s.bytes[BDEV_WRITE];
	}
	bdev_stats(b->vdisk, &s);
	w.user = (double)s.bytes[BDEV_WRITE];
	if (!log)
		return w;
	vlog_info(b->vdisk, &info);
	w.log = (double)info.log_bytes;
	w.destage = (double)info.destage_bytes;
	w.bypass = (double)info.bypass_bytes;
	w.clean = (double)info.clean_bytes;
	w.snap = (double)info.snap_bytes;
	return w;
}

static void written_print(const struct written *from, const struct written *to,
			  bool log)
{
	const double user = to->user - from->user;

	if (user <= 0)
		return;
	printf("  %5.2f", (to->all - from->all) / user);
	if (log)
		printf(" = log %.2f dest %.2f byp %.2f clean %.2f snap %.2f",
		       (to->log - from->log) / user,
		       (to->destage - from->destage) / user,
		       (to->bypass - from->bypass) / user,
		       (to->clean - from->clean) / user,
		       (to->snap - from->snap) / user);
}

static void row(struct bench *b, const struct config *c, unsigned kind,
		unsigned depth)
{
	static const char *const codec[] = { "raw", "lz4", "zstd" };
	const struct kind *k = &kinds[kind];
	const uint64_t span = b->span;
	struct written from, to;
	struct result r;

	if (!kind_named(b, k))
		return;
	depth = depth_of(b, k, depth);
	if (k->small_span)
		b->span = SMALL_SPAN;
	from = written_now(b, c->log);
	r = load_run(b, k, depth);
	to = written_now(b, c->log);
	b->span = span;
	printf("%-11s %-8s %-5s %-7s %-13s %4u %8.1f %8.3f %8.3f",
	       c->policy->name, c->log ? "log" : "in place",
	       c->log ? codec[c->codec] : "-", c->ratio > 1 ? "2:1" : "random",
	       k->name, depth, 1e3 / r.us, r.us, r.best);
	if (b->bare[kind].us > 0)
		r.of_bare = r.of_bare > 0 ? r.of_bare : b->bare[kind].us / r.us;
	if (r.of_bare > 0)
		printf(" %5.1f%%", r.of_bare * 100);
	else
		printf(" %6s", "-");
	written_print(&from, &to, c->log);
	printf("\n");
	fflush(stdout);
}

static void config_run(struct bench *b, const struct config *c, bool depths)
{
	static const unsigned depth[] = { 1, 4, 16, 32, 256 };
	static const char *const codec[] = { "raw", "lz4", "zstd" };
	const struct vlog_spec s = spec_of(b, c, NULL);
	uint64_t bytes = vlog_member_bytes(&s);

	if (!named(b->only_policy, c->policy->name) ||
	    !named(b->only_layout, c->log ? "log" : "in place") ||
	    (b->only_codec && strcmp(b->only_codec, codec[c->codec])) ||
	    (b->compressible && c->ratio <= 1.0) ||
	    (b->random && c->ratio > 1.0))
		return;
	if (!c->log)
		bytes = vdisk_slot_bytes(&s.policy, b->size, s.slots, 0);
	bytes = (bytes + BIG - 1) / BIG * BIG;
	content_init(&b->content, c->ratio, 1);
	content_fill(&b->content, 1, b->buf, (size_t)DEPTH_MAX * BLOCK);
	drives_open(b, c->policy->drives, bytes);
	bare_run(b, bytes);
	vdisk_make(b, c);
	b->span = b->size / 2;
	fill(b);
	for (unsigned i = 0; i < array_len(kinds); i++)
		if (c->log || i <= READ_1M)
			row(b, c, i, 128);
	for (unsigned i = 0; depths && !b->depth && i < array_len(depth); i++) {
		row(b, c, WRITE_4K, depth[i]);
		row(b, c, READ_4K, depth[i]);
	}
	bdev_close_sync(b->vdisk);
	printf("\n");
}

static void all_run(struct bench *b)
{
	struct config c = { 0 };

	printf("%-11s %-8s %-5s %-7s %-13s %4s %8s %8s %8s %6s  written\n",
	       "policy", "layout", "codec", "data", "i/o", "out", "k/CPU s",
	       "us", "best us", "ofbare");
	for (unsigned i = 0; i < array_len(policies); i++) {
		c = (struct config) { &policies[i], true, VDISK_LZ4, 1.0 };
		config_run(b, &c, i == 0);
		c.log = false;
		c.codec = VDISK_RAW;
		config_run(b, &c, false);
	}
	for (int codec = VDISK_RAW; codec <= VDISK_ZSTD; codec++) {
		c = (struct config) { &policies[0], true,
				      (enum vdisk_codec)codec, 2.0 };
		config_run(b, &c, false);
		c.ratio = 1.0;
		if (codec != VDISK_LZ4)
			config_run(b, &c, false);
	}
}

static void usage(void)
{
	fputs("usage: bench_vdisk_cpu [-s CPU_SECONDS] [-m MIB] [-p POLICY] "
	      "[-l LAYOUT]\n"
	      "                       [-c CODEC] [-w IO] [-d DEPTH] [-z | -r]\n"
	      "-m size of the vDisk, of which half is used; -p, -l, -w: only "
	      "those whose name\nholds this, -z, -r: only compressible, only "
	      "random data\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	const struct reactor_opts opts = { .arena_bytes = 64 * MIB, .seed = 1 };
	struct bench *b = calloc(1, sizeof(*b));
	struct err err;
	int opt;

	if (!b)
		return 1;
	b->seconds = 1.5;
	b->size = GIB;
	while ((opt = getopt(argc, argv, "s:m:p:l:c:w:d:zr")) != -1) {
		switch (opt) {
		case 's':
			b->seconds = atof(optarg);
			break;
		case 'm':
			b->size = strtoull(optarg, NULL, 0) * MIB;
			break;
		case 'p':
			b->only_policy = optarg;
			break;
		case 'l':
			b->only_layout = optarg;
			break;
		case 'c':
			b->only_codec = optarg;
			break;
		case 'w':
			b->only_kind = optarg;
			break;
		case 'd':
			b->depth = (unsigned)atoi(optarg);
			break;
		case 'z':
			b->compressible = true;
			break;
		case 'r':
			b->random = true;
			break;
		default:
			usage();
		}
	}
	if (b->depth > DEPTH_MAX || b->size < 64 * MIB)
		usage();
	if (reactor_new(&opts, &b->r, &err))
		die("reactor", err.text);
	rng_seed(&b->rng, 1);
	b->buf = reactor_buf_alloc(b->r, (size_t)DEPTH_MAX * BLOCK);
	if (!b->buf)
		die("buffers", "no memory");
	all_run(b);
	reactor_buf_free(b->r, b->buf, (size_t)DEPTH_MAX * BLOCK);
	reactor_free(b->r);
	free(b);
	return 0;
}
