/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Once a log-structured vDisk is open it allocates nothing: what it needs
 * comes from slabs and pools with a cap. Every allocation of the process is
 * seen here, whoever makes it, also the compressors' own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/bdev/mem.h"
#include "engine/vdisk/log/log.h"

#define DEPTH 64u
#define IO_MAX (1 * MIB)
#define FRAMES 12

/* ---- every allocation --------------------------------------------------- */

static bool watching;
static unsigned long allocations;
static size_t first_size;
static void *first_frame[FRAMES];
static int first_frames;

static void allocated(size_t size)
{
	if (!watching)
		return;
	watching = false; /* what follows allocates, too */
	if (!allocations++) {
		first_size = size;
		first_frames = backtrace(first_frame, FRAMES);
	}
	watching = true;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int __sanitizer_install_malloc_and_free_hooks(
	void (*on_malloc)(const volatile void *, size_t),
	void (*on_free)(const volatile void *));

static void on_malloc(const volatile void *p, size_t size)
{
	(void)p;
	allocated(size);
}

static void on_free(const volatile void *p)
{
	(void)p;
}

static void watch_init(void)
{
	assert_true(__sanitizer_install_malloc_and_free_hooks(on_malloc,
							      on_free) > 0);
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
	allocated(size);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocated(count * size);
	return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
	allocated(size);
	return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	allocated(size);
	return __libc_memalign(align, size);
}

static void watch_init(void)
{
}
#endif

static void watch(bool on)
{
	watching = on;
}

static void expect_none(const char *when)
{
	watching = false;
	if (!allocations)
		return;
	print_error("%lu allocations %s, the first of %zu bytes by\n",
		    allocations, when, first_size);
	backtrace_symbols_fd(first_frame, first_frames, STDERR_FILENO);
	fail();
}

/* ---- a vDisk on memory -------------------------------------------------- */

struct world {
	struct reactor *r;
	struct rng rng;
	struct vdisk_slot slot[6];
	struct bdev *vdisk;
	unsigned left, inflight;
	bool done;
	struct io io[DEPTH];
	uint8_t *buf[DEPTH];
};

static void opened(int result, const struct err *err, struct bdev *vdisk,
		   void *arg)
{
	struct world *w = arg;

	if (result)
		fail_msg("%s", err->text);
	w->vdisk = vdisk;
	w->done = true;
}

static void world_open(struct world *w, enum vdisk_codec codec)
{
	const struct reactor_opts opts = { .kind = REACTOR_SIM, .seed = 7 };
	struct vlog_spec spec = {
		.cluster = "lab",
		.name = "db1",
		.size_bytes = 24 * MIB,
		.policy = { .raid = RAID_6,
			    .k = 2,
			    .m = 2,
			    .codec = (uint8_t)codec },
		.tune = { .zone_bytes = MIB,
			  .zones = 6,
			  .unit_bytes = 32 * KIB,
			  .stripes = 4,
			  .buffer_bytes = 2 * MIB },
		.slot = w->slot,
		.slots = array_len(w->slot),
	};

	memset(w, 0, sizeof(*w));
	rng_seed(&w->rng, 5);
	assert_int_equal(reactor_new(&opts, &w->r, NULL), 0);
	for (unsigned i = 0; i < array_len(w->slot); i++) {
		snprintf(w->slot[i].domain, sizeof(w->slot[i].domain), "n%u",
			 i);
		assert_int_equal(bdev_mem_open(w->r, "m",
					       vlog_member_bytes(&spec), 512,
					       &w->slot[i].bdev, NULL),
				 0);
	}
	for (unsigned i = 0; i < DEPTH; i++) {
		w->buf[i] = reactor_buf_alloc(w->r, IO_MAX);
		for (size_t b = 0; b < IO_MAX; b++)
			w->buf[i][b] =
				b % 512 < 256 ? (uint8_t)rng_u64(&w->rng) : 0;
	}
	vlog_create(w->r, &spec, opened, w);
	while (!w->done)
		reactor_run_once(w->r, SEC_NS);
}

static void world_close(struct world *w)
{
	bdev_close_sync(w->vdisk);
	for (unsigned i = 0; i < DEPTH; i++)
		reactor_buf_free(w->r, w->buf[i], IO_MAX);
	reactor_free(w->r);
}

static void submit(struct world *w, struct io *io);

static void io_done(struct io *io)
{
	struct world *w = io->arg;

	w->inflight--;
	if (io->result && io->result != -ENOSPC)
		fail_msg("result %d", io->result);
	if (w->left)
		submit(w, io);
}

static void submit(struct world *w, struct io *io)
{
	const uint64_t size = w->vdisk->limits.size_bytes;
	const uint64_t what = rng_below(&w->rng, 20);

	w->left--;
	w->inflight++;
	io->op = what < 12 ? BDEV_WRITE : what < 19 ? BDEV_READ : BDEV_TRIM;
	io->len = rng_below(&w->rng, 20)
			  ? 4096 * (1 + (uint32_t)rng_below(&w->rng, 4))
			  : 4096 * (1 + (uint32_t)rng_below(&w->rng, 256));
	io->off = rng_below(&w->rng, (size - io->len) / 4096 + 1) * 4096;
	io->buf = io->op == BDEV_TRIM ? NULL : w->buf[io - w->io];
	io->done = io_done;
	io->arg = w;
	bdev_submit(w->vdisk, io);
}

static void load(struct world *w, unsigned ios)
{
	w->left = ios;
	for (unsigned i = 0; i < DEPTH; i++)
		submit(w, &w->io[i]);
	while (w->inflight)
		reactor_run_once(w->r, SEC_NS);
}

static void nothing_is_allocated(enum vdisk_codec codec)
{
	struct vlog_info info;
	static struct world w;

	world_open(&w, codec);
	watch(true);
	load(&w, 4000);
	vlog_checkpoint(w.vdisk);
	load(&w, 2000);
	expect_none("under load");
	/* Closing a member is not the data path. */
	assert_int_equal(vlog_member_fail(w.vdisk, 2, NULL), 0);
	reactor_run_once(w.r, 0);
	watch(true);
	load(&w, 4000);
	expect_none("without a member");
	vlog_info(w.vdisk, &info);
	assert_true(info.checkpoints > 1 && info.cleaned_segs > 0 &&
		    info.reads_degraded > 0 && info.bypass_bytes > 0);
	world_close(&w);
}

static void raw(void **state)
{
	(void)state;
	nothing_is_allocated(VDISK_RAW);
}

static void lz4(void **state)
{
	(void)state;
	nothing_is_allocated(VDISK_LZ4);
}

static void zstd(void **state)
{
	(void)state;
	nothing_is_allocated(VDISK_ZSTD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw),
		cmocka_unit_test(lz4),
		cmocka_unit_test(zstd),
	};

	first_frames = backtrace(first_frame, FRAMES); /* loads what it needs */
	watch_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
