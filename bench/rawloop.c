/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rawloop FILE|nop OUTSTANDING SECONDS DIRECT: 4 KiB random reads by a bare
 * ring with nothing done for each I/O: no clock, no histogram, no loop around
 * it. What the kernel allows one thread; no load generator can be above it.
 * Prints the number of I/Os and the seconds they took.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/rng.h"

#define BLOCK 4096u
#define CHECK_EVERY 4096u

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

struct raw {
	struct io_uring ring;
	struct rng rng;
	char *buf;
	uint64_t blocks; /* 0: no-ops */
	unsigned outstanding;
};

static void die(const char *what, int code)
{
	fprintf(stderr, "rawloop: %s: %s\n", what, strerror(code));
	exit(1);
}

static void raw_queue(struct raw *raw, uint64_t slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&raw->ring);

	if (!raw->blocks) {
		io_uring_prep_nop(sqe);
	} else {
		io_uring_prep_read_fixed(
			sqe, 0, raw->buf + slot * BLOCK, BLOCK,
			rng_below(&raw->rng, raw->blocks) * BLOCK, 0);
		sqe->flags = IOSQE_FIXED_FILE;
	}
	sqe->user_data = slot;
}

static unsigned raw_reap(struct raw *raw)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&raw->ring, head, cqe)
	{
		if (cqe->res < 0)
			die("read", -cqe->res);
		raw_queue(raw, cqe->user_data);
		n++;
	}
	io_uring_cq_advance(&raw->ring, n);
	return n;
}

static void raw_open(struct raw *raw, const char *path, bool direct)
{
	struct iovec iov;
	struct stat st;
	int fd, rc;

	rc = io_uring_queue_init(raw->outstanding, &raw->ring,
				 IORING_SETUP_SINGLE_ISSUER |
					 IORING_SETUP_DEFER_TASKRUN);
	if (rc)
		die("io_uring", -rc);
	rng_seed(&raw->rng, 1);
	if (!strcmp(path, "nop"))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
	if (fd < 0 || fstat(fd, &st))
		die(path, errno);
	raw->blocks = (uint64_t)st.st_size / BLOCK;
	raw->buf = aligned_alloc(BLOCK, (size_t)raw->outstanding * BLOCK);
	if (!raw->buf || !raw->blocks)
		die(path, ENOMEM);
	memset(raw->buf, 0, (size_t)raw->outstanding * BLOCK);
	iov.iov_base = raw->buf;
	iov.iov_len = (size_t)raw->outstanding * BLOCK;
	rc = io_uring_register_buffers(&raw->ring, &iov, 1);
	if (!rc)
		rc = io_uring_register_files(&raw->ring, &fd, 1);
	if (rc)
		die("registering", -rc);
	io_uring_register_ring_fd(&raw->ring);
}

int main(int argc, char **argv)
{
	struct raw raw = { 0 };
	uint64_t done = 0, check = CHECK_EVERY;
	double from, to, seconds;

	if (argc != 5) {
		fprintf(stderr, "usage: rawloop FILE|nop OUTSTANDING SECONDS "
				"DIRECT\n");
		return 2;
	}
	raw.outstanding = (unsigned)strtoul(argv[2], NULL, 10);
	seconds = strtod(argv[3], NULL);
	raw_open(&raw, argv[1], strtoul(argv[4], NULL, 10));
	for (unsigned i = 0; i < raw.outstanding; i++)
		raw_queue(&raw, i);
	from = to = now_s();
	while (to - from < seconds) {
		const int rc = io_uring_submit_and_wait(&raw.ring, 1);

		if (rc < 0 && rc != -EINTR)
			die("submit", -rc);
		done += raw_reap(&raw);
		if (done < check)
			continue;
		check = done + CHECK_EVERY;
		to = now_s();
	}
	printf("%llu %.6f\n", (unsigned long long)done, to - from);
	return 0;
}
