/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench_vdisk: one vDisk, one workload, one line of figures. The drives are
 * memory behind links that hold them to a bandwidth, IOPS and a latency, or
 * files and devices as they are (-F).
 *
 * Modelled drives run under the simulated reactor by default: the engine's
 * very code under a virtual clock, in which CPU costs nothing, so that what
 * is measured is what the drives allow and a minute of it takes seconds. -T
 * does the same in real time.
 *
 * Prints "key value" pairs; see figures_print(). The script of the same name
 * makes tables of them.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/bdev/file.h"
#include "engine/bdev/layers.h"
#include "engine/bdev/mem.h"
#include "engine/load/load.h"
#include "engine/vdisk/log/log.h"

#define DRIVES_MAX 16
#define SAMPLES_MAX 600

enum work { WORK_RANDOM, WORK_SEQUENTIAL, WORK_READ };

struct bench {
	/* asked for */
	enum work work;
	bool in_place, drive_alone, real_time;
	struct vdisk_policy policy;
	unsigned drives, outstanding, block;
	uint64_t size;
	double fill, age, seconds, compress;
	struct link_opts model;
	const char *path[DRIVES_MAX];
	unsigned paths;

	/* made */
	struct reactor *reactor;
	struct bdev *member[DRIVES_MAX], *vd;
	struct link *link[DRIVES_MAX];
	struct vdisk_slot slot[DRIVES_MAX];
	unsigned slots;
	bool over;
	int result;
	struct err err;

	/* measured */
	struct hist all;
	uint64_t ops, from_ns, to_ns;
	double rate[SAMPLES_MAX];
	unsigned rates;
	bool counting, stopping;
	struct load *load;
	uint64_t age_bytes, written;
	struct vlog_info before, after;
	double cpu;
	struct link_stats link_from[DRIVES_MAX], link_to[DRIVES_MAX];
};

static void fail(const struct bench *b)
{
	fprintf(stderr, "bench_vdisk: %s\n", b->err.text);
	exit(1);
}

static double cpu_now(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void turn_until_over(struct bench *b)
{
	while (!b->over)
		reactor_run_once(b->reactor, SEC_NS);
}

/* ---- drives and vDisk ---------------------------------------------------- */

static bool is_log(const struct bench *b)
{
	return !b->in_place && !b->drive_alone;
}

/* The layout in place has members for its data alone, and witnesses. */
static unsigned slots_of(const struct bench *b)
{
	struct vdisk_policy p = b->policy;
	unsigned need = 1;
	struct err err;

	if (b->drive_alone)
		return 1;
	if (!b->in_place)
		return b->drives;
	return vdisk_policy_fit(&p, b->drives, &need, &err) ? 0 : need;
}

static uint64_t member_bytes(const struct bench *b, unsigned i)
{
	if (b->drive_alone)
		return b->size;
	return vdisk_slot_bytes(&b->policy, b->size, b->slots, i);
}

static void member_open(struct bench *b, unsigned i, uint64_t bytes)
{
	const struct link_opts open_wide = { 0 };
	const struct bdev_file_opts file = { .path = b->path[i],
					     .len_bytes = bytes };
	struct bdev *raw;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "d%u", i);
	if (i < b->paths) {
		rc = bdev_file_open(b->reactor, &file, &b->member[i], &b->err);
		if (rc)
			fail(b);
		return;
	}
	rc = bdev_mem_open(b->reactor, name, bytes, 4096, &raw, &b->err);
	if (!rc)
		rc = link_new(b->reactor, name, &open_wide, &b->link[i],
			      &b->err);
	if (!rc)
		rc = bdev_link_open(raw, b->link[i], &b->member[i], &b->err);
	if (rc)
		fail(b);
}

/* Filling and ageing need not wait for drives whose speed is not measured. */
static void drives_hold(struct bench *b, bool hold)
{
	const struct link_opts open_wide = { 0 };

	for (unsigned i = 0; i < b->slots; i++)
		if (b->link[i])
			link_set(b->link[i], hold ? &b->model : &open_wide);
}

static void opened(int result, const struct err *err, struct bdev *vd,
		   void *arg)
{
	struct bench *b = arg;

	b->result = result;
	if (result)
		b->err = *err;
	b->vd = vd;
	b->over = true;
}

static void vdisk_make(struct bench *b)
{
	const struct vdisk_spec spec = { .cluster = "bench",
					 .name = "v",
					 .size_bytes = b->size,
					 .policy = b->policy,
					 .slot = b->slot,
					 .slots = slots_of(b) };

	b->slots = spec.slots;
	for (unsigned i = 0; i < b->slots; i++) {
		member_open(b, i, member_bytes(b, i));
		b->slot[i].bdev = b->member[i];
		snprintf(b->slot[i].domain, sizeof(b->slot[i].domain), "n%u",
			 i);
	}
	b->over = false;
	if (b->drive_alone)
		opened(0, NULL, b->member[0], b);
	else
		vdisk_create(b->reactor, &spec, opened, b);
	turn_until_over(b);
	if (b->result)
		fail(b);
}

static void vdisk_drop(struct bench *b)
{
	bdev_close_sync(b->vd);
	for (unsigned i = 0; i < b->slots; i++)
		link_free(b->link[i]);
}

/* ---- load ---------------------------------------------------------------- */

static uint64_t footprint(const struct bench *b)
{
	const uint64_t bytes = (uint64_t)((double)b->size * b->fill);

	return bytes / MIB * MIB;
}

static void filled(int result, void *arg)
{
	struct bench *b = arg;

	b->result = result;
	b->over = true;
}

static void fill(struct bench *b)
{
	const struct prefill_opts opts = { .target = b->vd,
					   .bytes = footprint(b),
					   .compress_ratio = b->compress,
					   .seed = 7,
					   .done = filled,
					   .arg = b };
	struct prefill *p;

	b->over = false;
	if (prefill_start(b->reactor, &opts, &p, &b->err))
		fail(b);
	turn_until_over(b);
	if (b->result) {
		err_set(&b->err, b->result, "prefill: %s",
			strerror(-b->result));
		fail(b);
	}
	prefill_free(p);
}

static void counters(struct bench *b, struct vlog_info *info)
{
	memset(info, 0, sizeof(*info));
	if (is_log(b))
		vlog_info(b->vd, info);
}

static void links_read(struct bench *b, struct link_stats *stats)
{
	for (unsigned i = 0; i < b->slots && b->link[i]; i++)
		link_stats(b->link[i], &stats[i]);
}

static void count_begin(struct bench *b, uint64_t now)
{
	b->counting = true;
	b->from_ns = now;
	counters(b, &b->before);
	links_read(b, b->link_from);
	b->cpu = cpu_now();
}

static void count_end(struct bench *b, uint64_t now)
{
	b->to_ns = now;
	counters(b, &b->after);
	links_read(b, b->link_to);
	b->cpu = cpu_now() - b->cpu;
	b->stopping = true;
	load_stop(b->load);
}

static void sampled(const struct load_sample *s, void *arg)
{
	struct bench *b = arg;
	const uint64_t ops = s->read.ops + s->write.ops;
	const uint64_t took = s->to_ns - s->from_ns;

	if (s->read.errors || s->write.errors) {
		err_set(&b->err, s->last_error, "the load: %s",
			strerror(-s->last_error));
		fail(b);
	}
	b->written += s->write.bytes;
	if (b->stopping)
		return;
	if (!b->counting) {
		if (b->written >= b->age_bytes) {
			drives_hold(b, true);
			b->age_bytes = UINT64_MAX;
		} else if (b->age_bytes != UINT64_MAX) {
			return;
		} else {
			/* The second after the change is not measured. */
			count_begin(b, s->to_ns);
		}
		return;
	}
	b->ops += ops;
	hist_merge(&b->all, &s->read.service);
	hist_merge(&b->all, &s->write.service);
	if (b->rates < SAMPLES_MAX)
		b->rate[b->rates++] = (double)ops * 1e9 / (double)took;
	if ((double)(s->to_ns - b->from_ns) >= b->seconds * 1e9)
		count_end(b, s->to_ns);
}

static void load_over(void *arg)
{
	((struct bench *)arg)->over = true;
}

/*
 * Ages the vDisk at the drives' own speed too: at a virtual clock it is free,
 * and what the cleaner is used to is then what it meets.
 */
static void run(struct bench *b)
{
	const struct workload workload = {
		.read_share = b->work == WORK_READ ? 1.0 : 0.0,
		.random_share = b->work == WORK_SEQUENTIAL ? 0.0 : 1.0,
		.read_sizes = { { b->block, 1.0 } },
		.read_size_count = 1,
		.compress_ratio = b->compress,
		.footprint_bytes = footprint(b),
	};
	const struct load_opts opts = { .workload = &workload,
					.rate = { .outstanding =
							  b->outstanding },
					.target = { b->vd },
					.targets = 1,
					.seed = 1,
					.interval_ns = SEC_NS,
					.sample = sampled,
					.stopped = load_over,
					.arg = b };

	b->age_bytes = (uint64_t)((double)b->size * b->age);
	b->over = false;
	drives_hold(b, true);
	if (load_start(b->reactor, &opts, &b->load, &b->err))
		fail(b);
	turn_until_over(b);
	load_free(b->load);
}

/* ---- figures ------------------------------------------------------------- */

static double quantile_us(const struct bench *b, double fraction)
{
	uint64_t ns = 0;

	hist_quantile(&b->all, fraction, &ns);
	return (double)ns / 1e3;
}

static double slowest(const struct bench *b)
{
	double low = b->rates ? b->rate[0] : 0;

	for (unsigned i = 1; i < b->rates; i++)
		low = b->rate[i] < low ? b->rate[i] : low;
	return low;
}

/* c, g, w of what was measured, put into the theory. */
static double theory(const struct bench *b, const struct limit_bytes *w)
{
	const struct limit_layout l = {
		.k = b->policy.k,
		.m = b->policy.m,
		.stored = 1 / b->compress,
		.group = 32,
		.cleaning = w->destage > 0 ? 1 + w->clean / w->destage : 1,
		.log_share = 0.02,
	};
	struct limit_bytes t;

	if (b->work == WORK_SEQUENTIAL)
		limit_sequential(&l, &t);
	else
		limit_random(&l, &t);
	return limit_written(&t);
}

static void log_print(const struct bench *b)
{
	const struct vlog_info *i = &b->after;
	struct limit_counts from, to;
	struct limit_bytes w;

	vlog_info_counts(&b->before, &from);
	vlog_info_counts(&b->after, &to);
	if (!limit_counted(&from, &to, &w))
		printf(" W %.3f log %.3f destage %.3f bypass %.3f clean %.3f "
		       "snap %.3f cleanread %.3f theory %.3f w %.3f",
		       limit_written(&w), w.log, w.destage, w.bypass, w.clean,
		       w.snap, w.clean_read, theory(b, &w),
		       w.destage > 0 ? 1 + w.clean / w.destage : 1);
	printf(" u %.3f F %.3f checkpoints %llu",
	       (double)i->live_bytes / (double)i->space_bytes, i->free,
	       (unsigned long long)(i->checkpoints - b->before.checkpoints));
}

/*
 * How the drives spent the time: busy, a share of it; of that moving bytes, the
 * rest being what small I/Os take beyond theirs.
 */
static void drives_print(const struct bench *b)
{
	const double took = (double)(b->to_ns - b->from_ns);
	double low = 1e300, high = 0, sum = 0, bytes = 0, ops = 0;

	if (!b->link[0])
		return;
	for (unsigned i = 0; i < b->slots; i++) {
		const struct link_stats *from = &b->link_from[i];
		const struct link_stats *to = &b->link_to[i];
		const double busy = (double)(to->busy_ns[1] - from->busy_ns[1]);

		sum += busy;
		low = busy < low ? busy : low;
		high = busy > high ? busy : high;
		bytes += (double)(to->bytes[1] - from->bytes[1]);
		ops += (double)(to->ops[1] - from->ops[1]);
	}
	if (sum > 0)
		printf(" spread %.3f busy %.3f moving %.3f perwrite %.0f",
		       (high - low) / (sum / b->slots), sum / b->slots / took,
		       bytes * 1e9 / (double)b->model.rate_bytes_s / b->slots /
			       took,
		       bytes / ops);
}

static void figures_print(const struct bench *b)
{
	const double took = (double)(b->to_ns - b->from_ns) / 1e9;
	const double iops = (double)b->ops / took;

	printf("iops %.0f mbs %.1f seconds %.2f slowest %.3f p50us %.0f "
	       "p99us %.0f p999us %.0f cpu %.2f",
	       iops, iops * b->block / 1e6, took, slowest(b) / iops,
	       quantile_us(b, 0.5), quantile_us(b, 0.99), quantile_us(b, 0.999),
	       b->cpu);
	if (is_log(b))
		log_print(b);
	drives_print(b);
	printf("\n");
	if (getenv("BENCH_SECONDS"))
		for (unsigned i = 0; i < b->rates; i++)
			fprintf(stderr, "second %u %.0f\n", i, b->rate[i]);
}

/* ---- the command --------------------------------------------------------- */

static void usage(void)
{
	fputs("usage: bench_vdisk [-l log|inplace|drive] [-P RAID:K:M]\n"
	      "  [-w random|sequential|read] [-n DRIVES] [-z MIB] [-f FILL]\n"
	      "  [-a AGE] [-q OUTSTANDING] [-k BYTES] [-s SECONDS] [-c RATIO]\n"
	      "  [-C raw|lz4|zstd] [-b BYTES/s] [-i IOPS] [-u LATENCY_US]\n"
	      "  [-h] [-T] [-F FILE]...\n"
	      "FILL share of addresses; AGE writes before, in sizes of the\n"
	      "vDisk; -h a drive's reads and writes share its time; -T real\n"
	      "time; -F a drive that is a file or device, overwritten\n",
	      stderr);
	exit(2);
}

static void policy_parse(struct bench *b, const char *s)
{
	unsigned raid, k, m;

	if (sscanf(s, "%u:%u:%u", &raid, &k, &m) != 3)
		usage();
	b->policy.raid = (enum raid_level)raid;
	b->policy.k = (uint8_t)k;
	b->policy.m = (uint8_t)m;
}

static void work_parse(struct bench *b, const char *s)
{
	if (!strcmp(s, "random"))
		b->work = WORK_RANDOM;
	else if (!strcmp(s, "sequential"))
		b->work = WORK_SEQUENTIAL;
	else if (!strcmp(s, "read"))
		b->work = WORK_READ;
	else
		usage();
}

static void layout_parse(struct bench *b, const char *s)
{
	b->in_place = strcmp(s, "log");
	if (!strcmp(s, "drive"))
		b->drive_alone = true;
	else if (b->in_place && strcmp(s, "inplace"))
		usage();
}

static void options_parse(struct bench *b, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv,
			     "l:P:w:n:z:f:a:q:k:s:c:C:b:i:u:hTF:")) != -1) {
		switch (opt) {
		case 'l':
			layout_parse(b, optarg);
			break;
		case 'P':
			policy_parse(b, optarg);
			break;
		case 'w':
			work_parse(b, optarg);
			break;
		case 'n':
			b->drives = (unsigned)atoi(optarg);
			break;
		case 'z':
			b->size = (uint64_t)atoi(optarg) * MIB;
			break;
		case 'f':
			b->fill = atof(optarg);
			break;
		case 'a':
			b->age = atof(optarg);
			break;
		case 'q':
			b->outstanding = (unsigned)atoi(optarg);
			break;
		case 'k':
			b->block = (unsigned)atoi(optarg);
			break;
		case 's':
			b->seconds = atof(optarg);
			break;
		case 'c':
			b->compress = atof(optarg);
			break;
		case 'C':
			b->policy.codec = !strcmp(optarg, "lz4")    ? VDISK_LZ4
					  : !strcmp(optarg, "zstd") ? VDISK_ZSTD
								    : VDISK_RAW;
			break;
		case 'b':
			b->model.rate_bytes_s = (uint64_t)atof(optarg);
			break;
		case 'i':
			b->model.rate_iops = (uint64_t)atof(optarg);
			break;
		case 'u':
			b->model.latency_ns = (uint64_t)(atof(optarg) * 1e3);
			break;
		case 'h':
			b->model.half_duplex = true;
			break;
		case 'T':
			b->real_time = true;
			break;
		case 'F':
			if (b->paths == DRIVES_MAX)
				usage();
			b->path[b->paths++] = optarg;
			b->real_time = true;
			break;
		default:
			usage();
		}
	}
}

int main(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct reactor_opts reactor = { .seed = 1, .name = "bench" };

	if (!b)
		return 1;
	b->policy = (struct vdisk_policy) { .raid = RAID_5, .k = 4, .m = 1 };
	b->drives = 7;
	b->size = 1024 * MIB;
	b->fill = 0.4;
	b->outstanding = 256;
	b->block = 4096;
	b->seconds = 10;
	b->compress = 1;
	hist_reset(&b->all);
	options_parse(b, argc, argv);
	if (b->drives > DRIVES_MAX || !b->size || b->seconds > SAMPLES_MAX)
		usage();
	reactor.kind = b->real_time ? REACTOR_AUTO : REACTOR_SIM;
	b->policy.layout = b->in_place ? VDISK_INPLACE : VDISK_LOG;
	b->policy.stripe_unit_bytes = b->in_place ? 64 * KIB : 128 * KIB;
	if (reactor_new(&reactor, &b->reactor, &b->err))
		fail(b);
	vdisk_make(b);
	fill(b);
	run(b);
	figures_print(b);
	vdisk_drop(b);
	reactor_free(b->reactor);
	free(b);
	return 0;
}
