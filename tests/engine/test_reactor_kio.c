/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Kernel I/O, buffers and a change of thread with I/O in flight, on every kind
 * of reactor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reactor_kinds.h"

static struct reactor *the; /* of the running test, for callbacks */

/* ---- kernel I/O --------------------------------------------------------- */

enum { BLOCKS = 600 }; /* more than the ring has entries */
struct filed {
	struct kio kio;
	bool done;
};
static int kios_left;

static void kio_done(struct kio *kio)
{
	struct filed *f = container_of(kio, struct filed, kio);

	assert_false(f->done);
	f->done = true;
	kios_left--;
}

static int file_temporary(char *path)
{
	strcpy(path, "base-test-reactor-XXXXXX");
	return mkstemp(path);
}

static void kios_run(struct filed *f, unsigned count)
{
	kios_left = (int)count;
	for (unsigned i = 0; i < count; i++) {
		f[i].done = false;
		f[i].kio.fn = kio_done;
		reactor_kio(the, &f[i].kio);
		assert_false(f[i].done);
	}
	while (kios_left)
		reactor_run_once(the, UINT64_MAX);
}

static void blocks_written_read_back(int fd, unsigned flags)
{
	struct filed *f = calloc(BLOCKS, sizeof(*f));
	uint8_t *buf = reactor_buf_alloc(the, BLOCKS * 4096);

	for (unsigned i = 0; i < BLOCKS; i++) {
		f[i].kio = (struct kio) {
			.op = KIO_WRITE,
			.flags = (uint8_t)flags,
			.fd = fd,
			.len = 4096,
			.off = i * 4096ull,
			.buf = buf + i * 4096ull,
		};
		memset(f[i].kio.buf, (int)(i % 251), 4096);
	}
	kios_run(f, BLOCKS);
	memset(buf, 0xff, BLOCKS * 4096);
	for (unsigned i = 0; i < BLOCKS; i++) {
		assert_int_equal(f[i].kio.result, 4096);
		f[i].kio.op = KIO_READ;
	}
	kios_run(f, BLOCKS);
	for (unsigned i = 0; i < BLOCKS; i++)
		for (unsigned j = 0; j < 4096; j += 511)
			assert_int_equal(buf[i * 4096 + j], i % 251);
	reactor_buf_free(the, buf, BLOCKS * 4096);
	free(f);
}

static void kernel_io_reads_what_it_wrote(void **state)
{
	char path[64];
	int fd = file_temporary(path), index;

	the = of(state);
	assert_true(fd >= 0);
	blocks_written_read_back(fd, 0);
	blocks_written_read_back(fd, KIO_POOL);
	if (!reactor_file_register(the, fd, &index)) {
		blocks_written_read_back(index, KIO_FIXED_FD);
		reactor_file_unregister(the, index);
	}
	unlink(path);
	close(fd);
	reactor_free(the);
}

static void kernel_io_gives_the_kernels_answer(void **state)
{
	struct filed f[5];
	char path[64];
	uint8_t *buf;
	int fd = file_temporary(path);

	the = of(state);
	buf = reactor_buf_alloc(the, 8192);
	memset(buf, 7, 8192);
	assert_int_equal(ftruncate(fd, 6000), 0);
	f[0].kio = (struct kio) {
		.op = KIO_READ, .fd = fd, .len = 8192, .buf = buf
	};
	f[1].kio = (struct kio) {
		.op = KIO_READ, .fd = -1, .len = 4096, .buf = buf
	};
	f[2].kio = (struct kio) { .op = KIO_FSYNC, .fd = fd };
	kios_run(f, 3);
	assert_int_equal(f[0].kio.result, 6000);
	assert_int_equal(f[1].kio.result, -EBADF);
	assert_int_equal(f[2].kio.result, 0);
	memset(buf, 7, 8192);
	f[0].kio.op = KIO_WRITE;
	f[0].kio.flags = KIO_DSYNC;
	kios_run(f, 1);
	assert_int_equal(f[0].kio.result, 8192);
	f[0].kio = (struct kio) { .op = KIO_PUNCH, .fd = fd, .len = 4096 };
	kios_run(f, 1);
	if (f[0].kio.result != -EOPNOTSUPP) {
		assert_int_equal(f[0].kio.result, 0);
		assert_int_equal(pread(fd, buf, 8192, 0), 8192);
		assert_int_equal(buf[0], 0);
		assert_int_equal(buf[4096], 7);
	}
	reactor_buf_free(the, buf, 8192);
	unlink(path);
	close(fd);
	reactor_free(the);
}

static void stop_task(struct task *task)
{
	(void)task;
	reactor_stop(the);
}

/* Reads queued here are called back on the thread that takes over, and those
 * it leaves behind on this one. */
static void it_changes_hands_with_io_in_flight(void **state)
{
	struct task stop = { .fn = stop_task };
	struct filed f[8];
	char path[64];
	uint8_t *buf;
	int fd = file_temporary(path), index = -1;

	the = of(state);
	buf = reactor_buf_alloc(the, sizeof(f) / sizeof(f[0]) * 4096);
	assert_int_equal(ftruncate(fd, 4096), 0);
	if (reactor_file_register(the, fd, &index))
		index = -1;
	for (int round = 0; round < 4; round++) {
		kios_left = 8;
		for (int i = 0; i < 8; i++) {
			f[i].kio = (struct kio) { .op = KIO_READ,
						  .fd = fd,
						  .len = 4096,
						  .buf = buf + i * 4096,
						  .fn = kio_done };
			if (i % 2 && index >= 0) {
				f[i].kio.fd = index;
				f[i].kio.flags = KIO_FIXED_FD;
			}
			f[i].done = false;
			reactor_kio(the, &f[i].kio);
		}
		if (round % 2)
			reactor_run_once(the, 0);
		assert_int_equal(reactor_thread_start(the, NULL), 0);
		reactor_send(the, &stop);
		reactor_thread_join(the);
		while (kios_left)
			reactor_run_once(the, UINT64_MAX);
		for (int i = 0; i < 8; i++)
			assert_int_equal(f[i].kio.result, 4096);
	}
	if (index >= 0)
		reactor_file_unregister(the, index);
	reactor_buf_free(the, buf, sizeof(f) / sizeof(f[0]) * 4096);
	unlink(path);
	close(fd);
	reactor_free(the);
}

static void buffers_are_aligned_zeroed_and_apart(void **state)
{
	enum { N = 64 };
	struct {
		uint8_t *buf;
		size_t len;
	} b[N] = { 0 };
	struct rng rng;

	the = of(state);
	rng_seed(&rng, 3);
	for (int round = 0; round < 1000; round++) {
		const unsigned i = (unsigned)rng_below(&rng, N);

		if (b[i].buf) {
			for (size_t j = 0; j < b[i].len; j += 509)
				assert_int_equal(b[i].buf[j], i + 1);
			reactor_buf_free(the, b[i].buf, b[i].len);
		}
		b[i].len = 1 + rng_below(&rng, 100000);
		b[i].buf = reactor_buf_alloc(the, b[i].len);
		assert_non_null(b[i].buf);
		assert_int_equal((uintptr_t)b[i].buf % 4096, 0);
		for (size_t j = 0; j < b[i].len; j += 509)
			assert_int_equal(b[i].buf[j], 0);
		memset(b[i].buf, (int)i + 1, b[i].len);
	}
	for (int i = 0; i < N; i++)
		reactor_buf_free(the, b[i].buf, b[i].len);
	reactor_free(the);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(kernel_io_reads_what_it_wrote),
		EACH(kernel_io_gives_the_kernels_answer),
		EACH(it_changes_hands_with_io_in_flight),
		EACH(buffers_are_aligned_zeroed_and_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
