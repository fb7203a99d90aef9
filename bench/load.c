/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench_load: one load job on one target from the command line, with all that
 * a run has: full histograms, intervals of a second, the engine's own bdev and
 * reactor. And `bench_load cpu COMMAND...`: the CPU seconds a whole process
 * took, so that all programs are measured alike.
 *
 * Prints one line: ops seconds scheduled mean_us p50_us p99_us p99.9_us bound
 * (response times in open loop, service times in closed loop).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/bdev/file.h"
#include "engine/bdev/mem.h"
#include "engine/load/load.h"

struct bench {
	const char *path; /* NULL: null */
	bool buffered, poisson, spin;
	unsigned outstanding, block;
	double seconds, iops, read_share;

	struct reactor *reactor;
	struct load *load;
	struct timer end;
	struct hist all;
	uint64_t from_ns, to_ns, scheduled, backlog;
	unsigned bound;
	bool stopped;
};

static void sample_add(const struct load_sample *s, void *arg)
{
	struct bench *b = arg;
	const bool open_loop = b->iops > 0.0;

	if (!b->from_ns)
		b->from_ns = s->from_ns;
	b->to_ns = s->to_ns;
	hist_merge(&b->all, open_loop ? &s->read.response : &s->read.service);
	hist_merge(&b->all, open_loop ? &s->write.response : &s->write.service);
	b->scheduled += s->scheduled;
	b->backlog = s->backlog;
	b->bound |= s->bound;
	if (s->read.errors || s->write.errors) {
		fprintf(stderr, "bench_load: %s\n", strerror(-s->last_error));
		exit(1);
	}
}

static void load_over(void *arg)
{
	struct bench *b = arg;

	b->stopped = true;
	reactor_stop(b->reactor);
}

static void end_fire(struct timer *timer)
{
	load_stop(container_of(timer, struct bench, end)->load);
}

static int target_open(struct bench *b, struct bdev **bdev, struct err *err)
{
	const struct bdev_file_opts opts = {
		.path = b->path,
		.buffered = b->buffered,
		.read_only = b->read_share >= 1.0,
	};

	if (!b->path)
		return bdev_null_open(b->reactor, "null", 64 * GIB, 512, bdev,
				      err);
	return bdev_file_open(b->reactor, &opts, bdev, err);
}

static int bench_run(struct bench *b, struct err *err)
{
	const struct reactor_opts reactor = {
		.arena_bytes = (2ull * b->outstanding * b->block + 4 * MIB),
		.seed = 1,
		.name = "bench",
		.busy_poll = b->spin,
	};
	const struct workload workload = {
		.read_share = b->read_share,
		.random_share = 1.0,
		.read_sizes = { { b->block, 1.0 } },
		.read_size_count = 1,
		.compress_ratio = 1.0,
	};
	struct load_opts load = {
		.workload = &workload,
		.rate = { b->iops, b->poisson ? LOAD_POISSON : LOAD_UNIFORM,
			  b->outstanding },
		.targets = 1,
		.seed = 1,
		.interval_ns = SEC_NS,
		.sample = sample_add,
		.stopped = load_over,
		.arg = b,
	};
	int rc = reactor_new(&reactor, &b->reactor, err);

	if (!rc)
		rc = target_open(b, &load.target[0], err);
	if (!rc)
		rc = load_start(b->reactor, &load, &b->load, err);
	if (rc)
		return rc;
	b->end.fn = end_fire;
	timer_arm(b->reactor, &b->end,
		  reactor_now(b->reactor) +
			  (uint64_t)(b->seconds * (double)SEC_NS));
	while (!b->stopped)
		reactor_run(b->reactor);
	load_free(b->load);
	bdev_close_sync(load.target[0]);
	reactor_free(b->reactor);
	return 0;
}

static double quantile_us(const struct bench *b, double fraction)
{
	uint64_t ns = 0;

	hist_quantile(&b->all, fraction, &ns);
	return (double)ns / 1e3;
}

static void bench_print(const struct bench *b)
{
	printf("%llu %.6f %llu %.2f %.2f %.2f %.2f %s\n",
	       (unsigned long long)b->all.count,
	       (double)(b->to_ns - b->from_ns) / 1e9,
	       (unsigned long long)b->scheduled, hist_mean_ns(&b->all) / 1e3,
	       quantile_us(b, 0.5), quantile_us(b, 0.99), quantile_us(b, 0.999),
	       b->bound ? "generator" : "-");
}

/* Prints user and system seconds of a child, and passes its status on. */
static int cpu_run(char **argv)
{
	struct rusage usage;
	int status;
	const pid_t pid = fork();

	if (!pid) {
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		perror("bench_load: cpu");
		return 1;
	}
	fprintf(stderr, "cpu %.6f %.6f\n",
		(double)usage.ru_utime.tv_sec +
			(double)usage.ru_utime.tv_usec * 1e-6,
		(double)usage.ru_stime.tv_sec +
			(double)usage.ru_stime.tv_usec * 1e-6);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void usage(void)
{
	fputs("usage: bench_load [-b] [-f FILE] [-n OUTSTANDING] [-s SECONDS]\n"
	      "                  [-r IOPS] [-p] [-w WRITE_SHARE] [-k BYTES] "
	      "[-y]\n"
	      "       bench_load cpu COMMAND [ARGUMENT...]\n"
	      "-b buffered; -f none: null; -r open loop; -p Poisson; -y spin\n",
	      stderr);
}

int main(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct err err = { 0 };
	int opt;

	if (argc > 2 && !strcmp(argv[1], "cpu"))
		return cpu_run(argv + 2);
	if (!b)
		return 1;
	hist_reset(&b->all);
	b->outstanding = 32;
	b->seconds = 3.0;
	b->read_share = 1.0;
	b->block = 4096;
	while ((opt = getopt(argc, argv, "bf:n:s:r:pw:k:y")) != -1) {
		switch (opt) {
		case 'b':
			b->buffered = true;
			break;
		case 'f':
			b->path = optarg;
			break;
		case 'n':
			b->outstanding = (unsigned)atoi(optarg);
			break;
		case 's':
			b->seconds = atof(optarg);
			break;
		case 'r':
			b->iops = atof(optarg);
			break;
		case 'p':
			b->poisson = true;
			break;
		case 'w':
			b->read_share = 1.0 - atof(optarg);
			break;
		case 'k':
			b->block = (unsigned)atoi(optarg);
			break;
		case 'y':
			b->spin = true;
			break;
		default:
			usage();
			return 2;
		}
	}
	if (bench_run(b, &err)) {
		fprintf(stderr, "bench_load: %s\n", err.text);
		return 1;
	}
	bench_print(b);
	free(b);
	return 0;
}
