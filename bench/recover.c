/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench_recover DIR K M SLOTS GIB...: memory and opening of log-structured
 * vDisks of several sizes, against what iodeck-vdisk(5) states. For each size,
 * in processes of their own:
 *
 *   fill    made, every block written once in large writes, closed
 *   clean   opened again; 4 KiB writes until the log is nearly due for a
 *           checkpoint; kill -9
 *   killed  opened again: snapshot and log are read back
 *
 * Labels, log and snapshots lie in files in DIR, as drives would hold them.
 * Segments, which no opening reads, are forgotten: so a fully written vDisk
 * takes little of the disk. Prints a line of figures for each size.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/bdev/file.h"
#include "engine/bdev/layer.h"
#include "engine/vdisk/log/impl.h"

#define FILL_BYTES (1 * MIB)
#define FILL_DEPTH 4u
#define SMALL_DEPTH 64u
#define LOG_FILL 0.47 /* a checkpoint is due from one half on */

struct figures {
	uint64_t stated_bytes, rss_fill, rss_clean, rss_peak, rss_killed;
	uint64_t fill_ns, close_ns, clean_ns, killed_ns;
	uint64_t clean_cpu_ns, killed_cpu_ns; /* of them, of the processor */
	uint64_t log_bytes, snap_bytes, replayed, mapped;
	double log_fill, read_bytes_s;
	bool done;
};

struct run {
	const char *dir;
	struct vlog_spec spec;
	struct fmt_label label;
	struct vdisk_slot slot[FMT_COMPS_MAX];
	struct reactor *r;
	struct bdev *vdisk;
	struct figures *fig;
	uint64_t rss_before;
	bool over;
};

static void give_up(const char *what, const char *why)
{
	fprintf(stderr, "bench_recover: %s: %s\n", what, why);
	_exit(1);
}

/* ---- a member whose segments go nowhere --------------------------------- */

struct front_bdev {
	struct layer layer;
	uint64_t data_off;
};

static void front_done(struct io *io)
{
	layer_io_complete(layer_io_of(io), io->result);
}

static void front_submit(struct bdev *bdev, struct io *io)
{
	struct layer *layer = layer_of(bdev);
	const struct front_bdev *f =
		container_of(layer, struct front_bdev, layer);
	struct layer_io *lio;

	if (io->op != BDEV_FLUSH && io->off >= f->data_off) {
		bdev_complete_later(io, 0);
		return;
	}
	lio = layer_io_get(layer, io, front_done);
	if (lio)
		layer_io_pass(lio);
}

static const struct bdev_ops front_ops = {
	.kind = "front",
	.submit = front_submit,
	.close = layer_close,
};

static void member_open(struct run *run, unsigned i, bool make)
{
	struct bdev_file_opts opts = { 0 };
	struct bdev *file = NULL;
	struct err err = { 0 };
	struct layer *layer;
	char path[300];

	snprintf(path, sizeof(path), "%s/%u", run->dir, i);
	opts.path = path;
	if (make)
		opts.create_bytes = geo_member_bytes(&run->label);
	/* The kernel may still hold what a killed one had in flight. */
	for (int tries = 0;
	     bdev_file_open(run->r, &opts, &file, &err) && tries < 2000;
	     tries++)
		usleep(2000);
	if (!file)
		give_up(path, err.text);
	layer = layer_new(sizeof(struct front_bdev), &front_ops, file, NULL,
			  &err);
	if (!layer)
		give_up(path, err.text);
	container_of(layer, struct front_bdev, layer)->data_off =
		run->label.off_data;
	run->slot[i].bdev = &layer->bdev;
}

/* ---- this process ------------------------------------------------------- */

static uint64_t status_bytes(const char *key)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), "%llu", &kib);
	if (f)
		fclose(f);
	return kib * 1024;
}

static uint64_t rss(const struct run *run, const char *key)
{
	const uint64_t now = status_bytes(key);

	return now > run->rss_before ? now - run->rss_before : 0;
}

static void on_vdisk(int result, const struct err *err, struct bdev *vdisk,
		     void *arg)
{
	struct run *run = arg;

	if (result)
		give_up("vDisk", err->text);
	run->vdisk = vdisk;
	run->over = true;
}

static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SEC_NS + (uint64_t)t.tv_nsec;
}

/* Returns how long it took. */
static uint64_t bring_up(struct run *run, bool make, uint64_t *cpu_ns)
{
	const struct reactor_opts opts = { .kind = REACTOR_AUTO };
	struct err err = { 0 };
	uint64_t from;

	if (reactor_new(&opts, &run->r, &err))
		give_up("reactor", err.text);
	for (unsigned i = 0; i < run->spec.slots; i++)
		member_open(run, i, make);
	run->rss_before = status_bytes("VmRSS:");
	from = reactor_now(run->r);
	*cpu_ns = cpu_now();
	if (make)
		vlog_create(run->r, &run->spec, on_vdisk, run);
	else
		vlog_open(run->r, &run->spec, on_vdisk, run);
	while (!run->over)
		reactor_run_once(run->r, SEC_NS);
	*cpu_ns = cpu_now() - *cpu_ns;
	return reactor_now(run->r) - from;
}

/* ---- load --------------------------------------------------------------- */

struct writer {
	struct io io;
	struct load *load;
};

struct load {
	struct run *run;
	struct rng rng;
	uint64_t next;
	bool small, stop;
	unsigned out;
	struct writer w[SMALL_DEPTH];
};

static void writer_next(struct writer *w)
{
	struct load *l = w->load;
	const uint64_t size = l->run->vdisk->limits.size_bytes;

	if (l->small) {
		w->io.off = rng_below(&l->rng, size / FMT_BLOCK) * FMT_BLOCK;
		w->io.len = FMT_BLOCK;
	} else {
		if (l->next == size)
			return;
		w->io.off = l->next;
		w->io.len = FILL_BYTES;
		l->next += FILL_BYTES;
	}
	l->out++;
	bdev_submit(l->run->vdisk, &w->io);
}

static void written(struct io *io)
{
	struct writer *w = container_of(io, struct writer, io);

	w->load->out--;
	if (io->result)
		give_up("write", strerror(-io->result));
	if (!w->load->stop)
		writer_next(w);
}

static void load_begin(struct load *l, struct run *run, bool small)
{
	const unsigned depth = small ? SMALL_DEPTH : FILL_DEPTH;
	static _Alignas(4096) uint8_t data[FILL_BYTES];

	memset(l, 0, sizeof(*l));
	l->run = run;
	l->small = small;
	rng_seed(&l->rng, 1);
	for (size_t i = 0; i < sizeof(data); i += 8) {
		const uint64_t x = rng_u64(&l->rng);

		memcpy(data + i, &x, 8);
	}
	for (unsigned i = 0; i < depth; i++) {
		struct writer *w = &l->w[i];

		w->load = l;
		w->io.op = BDEV_WRITE;
		w->io.buf = data;
		w->io.done = written;
		writer_next(w);
	}
}

/* ---- the three lives ---------------------------------------------------- */

static void life_fill(struct run *run)
{
	static struct load l;
	struct figures *f = run->fig;
	uint64_t from;

	bring_up(run, true, &from);
	from = reactor_now(run->r);
	load_begin(&l, run, false);
	while (l.out)
		reactor_run_once(run->r, SEC_NS);
	f->fill_ns = reactor_now(run->r) - from;
	f->rss_fill = rss(run, "VmRSS:");
	from = reactor_now(run->r);
	bdev_close_sync(run->vdisk);
	f->close_ns = reactor_now(run->r) - from;
}

static void life_clean(struct run *run)
{
	static struct load l;
	struct figures *f = run->fig;
	struct vlog_info info;
	uint64_t log = 0;

	f->clean_ns = bring_up(run, false, &f->clean_cpu_ns);
	f->rss_clean = rss(run, "VmRSS:");
	vlog_info(run->vdisk, &info);
	f->mapped = info.blocks_mapped;
	load_begin(&l, run, true);
	do {
		reactor_run_once(run->r, SEC_NS);
		vlog_info(run->vdisk, &info);
		if (info.checkpoints > 1) /* of the opening is one */
			log = info.log_bytes;
	} while (info.log_fill < LOG_FILL);
	f->log_fill = info.log_fill;
	f->log_bytes = (info.log_bytes - log) / (run->spec.policy.m + 1u);
	f->rss_peak = rss(run, "VmHWM:");
	f->done = true;
	raise(SIGKILL);
}

/* What one drive gives of a file that is written, asked as a recovery asks. */
static double read_rate(struct run *run)
{
	const uint64_t len = 256 * MIB;
	uint8_t *buf = reactor_buf_alloc(run->r, MIB);
	struct bdev_file_opts opts = { .create_bytes = len };
	struct bdev *bdev = NULL;
	struct err err = { 0 };
	char path[300];
	uint64_t from;

	snprintf(path, sizeof(path), "%s/probe", run->dir);
	opts.path = path;
	if (!buf || bdev_file_open(run->r, &opts, &bdev, &err))
		give_up("probe", err.text);
	memset(buf, 7, MIB);
	for (uint64_t at = 0; at < len; at += MIB)
		if (bdev_io_sync(bdev, BDEV_WRITE, 0, at, buf, MIB))
			give_up("probe", "write");
	bdev_io_sync(bdev, BDEV_FLUSH, 0, 0, NULL, 0);
	from = reactor_now(run->r);
	for (uint64_t at = 0; at < len; at += MIB)
		if (bdev_io_sync(bdev, BDEV_READ, 0, at, buf, MIB))
			give_up("probe", "read");
	from = reactor_now(run->r) - from;
	bdev_close_sync(bdev);
	unlink(path);
	return (double)len * 1e9 / (double)from;
}

static void life_killed(struct run *run)
{
	struct figures *f = run->fig;
	struct vlog_info info;

	f->killed_ns = bring_up(run, false, &f->killed_cpu_ns);
	f->rss_killed = rss(run, "VmRSS:");
	vlog_info(run->vdisk, &info);
	f->replayed = info.replayed;
	f->snap_bytes = info.snap_bytes / (run->spec.policy.m + 1u);
	f->read_bytes_s = read_rate(run);
	bdev_close_sync(run->vdisk);
}

static void live(struct run *run, void (*life)(struct run *run), bool dies)
{
	const pid_t pid = fork();
	int status = 0;

	if (!pid) {
		life(run);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 ||
	    (dies ? !WIFSIGNALED(status) || !run->fig->done : status))
		exit(1);
}

/* ---- all sizes ---------------------------------------------------------- */

static void say(const struct run *run, double gib)
{
	const struct figures *f = run->fig;
	const double mib = (double)MIB, s = 1e9;
	const double m = run->spec.policy.m;
	/* All components share the drive. */
	const double stated_s =
		(2 * (double)f->log_bytes + (m + 2) * (double)f->snap_bytes) /
		f->read_bytes_s;

	printf("%5.4g GiB  memory stated %6.0f MiB; filled %6.0f, opened clean "
	       "%6.0f, at most %6.0f (%3.0f %%), opened after kill %6.0f\n",
	       gib, (double)f->stated_bytes / mib, (double)f->rss_fill / mib,
	       (double)f->rss_clean / mib, (double)f->rss_peak / mib,
	       (double)f->rss_peak * 100 / (double)f->stated_bytes,
	       (double)f->rss_killed / mib);
	printf("           filled at %.0f MiB/s, closed in %.2f s, opened "
	       "clean in %.2f s, CPU %.2f s (snapshot %.1f MiB)\n",
	       gib * 1024 / ((double)f->fill_ns / s), (double)f->close_ns / s,
	       (double)f->clean_ns / s, (double)f->clean_cpu_ns / s,
	       (double)f->snap_bytes / mib);
	printf("           after kill: log %.0f MiB of %.0f %%, %llu records, "
	       "opened in %.2f s, CPU %.2f s; stated %.2f s at %.0f MiB/s\n",
	       (double)f->log_bytes / mib, f->log_fill * 100,
	       (unsigned long long)f->replayed, (double)f->killed_ns / s,
	       (double)f->killed_cpu_ns / s, stated_s, f->read_bytes_s / mib);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct run run;
	struct err err = { 0 };

	if (argc < 6)
		return 2;
	run.dir = argv[1];
	run.fig = mmap(NULL, sizeof(*run.fig), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run.fig == MAP_FAILED)
		return 1;
	run.spec = (struct vlog_spec) {
		.cluster = "bench",
		.name = "v",
		.policy = { .k = (uint8_t)atoi(argv[2]),
			    .m = (uint8_t)atoi(argv[3]) },
		.slot = run.slot,
		.slots = (unsigned)atoi(argv[4]),
	};
	run.spec.policy.raid = run.spec.policy.k == 1   ? RAID_1
			       : run.spec.policy.m == 1 ? RAID_5
							: RAID_6;
	for (int i = 5; i < argc; i++) {
		const double gib = strtod(argv[i], NULL);

		memset(run.fig, 0, sizeof(*run.fig));
		run.spec.size_bytes = (uint64_t)(gib * 1024) * MIB;
		if (geo_label(&run.spec, &run.label, &err))
			give_up(argv[i], err.text);
		run.fig->stated_bytes = vlog_memory_bytes(&run.spec);
		live(&run, life_fill, false);
		live(&run, life_clean, true);
		live(&run, life_killed, false);
		say(&run, gib);
		for (unsigned s = 0; s < run.spec.slots; s++) {
			char path[300];

			snprintf(path, sizeof(path), "%s/%u", run.dir, s);
			unlink(path);
		}
	}
	return 0;
}
