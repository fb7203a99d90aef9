/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench_bdev [FILE]: what an io costs in each block device and layer, in
 * nanoseconds of CPU of the whole process: 4 KiB random reads kept at 32
 * outstanding by the shortest caller there can be. FILE, where given, is read
 * through the page cache.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/bdev/file.h"
#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"

#define DEPTH 32
#define BLOCK 4096u
#define SIZE (64 * MIB)

struct bench {
	struct reactor *r;
	struct bdev *bdev;
	struct rng rng;
	uint64_t left, blocks;
	unsigned inflight;
	uint8_t *buf;
	struct io io[DEPTH];
};

static void next(struct bench *b, struct io *io)
{
	io->off = rng_below(&b->rng, b->blocks) * BLOCK;
	b->left--;
	bdev_submit(b->bdev, io);
}

static void done(struct io *io)
{
	struct bench *b = io->arg;

	if (io->result) {
		fprintf(stderr, "bench_bdev: %s\n", strerror(-io->result));
		exit(1);
	}
	if (b->left)
		next(b, io);
	else
		b->inflight--;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double run(struct bench *b, uint64_t count)
{
	const double from = cpu_seconds();

	b->left = count;
	b->blocks = b->bdev->limits.size_bytes / BLOCK;
	for (unsigned i = 0; i < DEPTH; i++) {
		b->io[i] = (struct io) { .op = BDEV_READ,
					 .len = BLOCK,
					 .buf = b->buf + i * BLOCK,
					 .done = done,
					 .arg = b };
		b->inflight++;
		next(b, &b->io[i]);
	}
	while (b->inflight)
		reactor_run_once(b->r, UINT64_MAX);
	return (cpu_seconds() - from) / (double)count * 1e9;
}

static void report(struct bench *b, const char *what, uint64_t count,
		   bool timed)
{
	b->bdev->timed = timed;
	run(b, count / 10);
	printf("%-28s %8.1f ns an io\n", what, run(b, count));
	bdev_close_sync(b->bdev);
}

static struct bdev *null_of(struct bench *b)
{
	struct bdev *bdev = NULL;

	if (bdev_null_open(b->r, "null", SIZE, 512, &bdev, NULL))
		exit(1);
	return bdev;
}

static void layers(struct bench *b)
{
	const struct delay_opts none = { 0 };
	const struct link_opts fast = { .rate_bytes_s = 1ull << 50 };
	struct link *link = NULL;

	b->bdev = null_of(b);
	report(b, "null", 20000000, false);
	b->bdev = null_of(b);
	report(b, "null, timed", 10000000, true);
	if (!bdev_slice_open(null_of(b), "s", 0, SIZE, &b->bdev, NULL))
		report(b, "slice over null", 10000000, false);
	if (!bdev_error_open(null_of(b), &b->bdev, NULL))
		report(b, "error over null", 10000000, false);
	if (!bdev_delay_open(null_of(b), &none, &b->bdev, NULL))
		report(b, "delay (0) over null", 10000000, false);
	if (!link_new(b->r, "l", &fast, &link, NULL) &&
	    !bdev_link_open(null_of(b), link, &b->bdev, NULL))
		report(b, "link over null", 10000000, false);
	link_free(link);
	if (!bdev_mem_open(b->r, "mem", SIZE, 512, &b->bdev, NULL))
		report(b, "mem", 5000000, false);
}

static void remote(struct bench *b)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO };
	struct bdev *child = NULL;
	struct reactor *there;

	if (reactor_new(&opts, &there, NULL) ||
	    bdev_null_open(there, "null", SIZE, 512, &child, NULL) ||
	    reactor_thread_start(there, NULL) ||
	    bdev_remote_open(b->r, child, &b->bdev, NULL))
		exit(1);
	report(b, "remote null (both threads)", 1000000, false);
	reactor_stop(there);
	reactor_thread_join(there);
	bdev_close_sync(child);
	reactor_free(there);
}

int main(int argc, char **argv)
{
	const struct reactor_opts opts = { .arena_bytes = 2 * MIB, .seed = 1 };
	struct bench b = { 0 };
	struct err err;

	if (reactor_new(&opts, &b.r, &err)) {
		fprintf(stderr, "bench_bdev: %s\n", err.text);
		return 1;
	}
	rng_seed(&b.rng, 1);
	b.buf = reactor_buf_alloc(b.r, DEPTH * BLOCK);
	layers(&b);
	remote(&b);
	if (argc > 1) {
		const struct bdev_file_opts file = { .path = argv[1],
						     .buffered = true,
						     .read_only = true };

		if (bdev_file_open(b.r, &file, &b.bdev, &err)) {
			fprintf(stderr, "bench_bdev: %s\n", err.text);
			return 1;
		}
		report(&b, "file, page cache", 2000000, false);
	}
	reactor_buf_free(b.r, b.buf, DEPTH * BLOCK);
	reactor_free(b.r);
	return 0;
}
