/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Exporters with a real nbdkit: who may come in, what outlives what, and who
 * never learns the key.
 */
#include "backend/agent/export.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/bdev/mem.h"
#include "engine/bdev/nbd.h"
#include "engine/bdev/nbd_conn.h"
#include "engine/vdisk/vdisk.h"

#define SIZE (4 * MIB)
#define PORT 21500

struct bench {
	char dir[64];
	struct reactor *r;
	struct exports *x;
	struct drive *drive;
	char said[8192]; /* all of the log */
};

/* ---- the bench ---------------------------------------------------------- */

static void say(const char *level, const char *text, void *arg)
{
	struct bench *b = arg;
	const size_t at = strlen(b->said);

	snprintf(b->said + at, sizeof(b->said) - at, "%s: %s\n", level, text);
}

static void exports_make(struct bench *b)
{
	struct exports_opts opts = { .reactor = b->r, .say = say, .arg = b };
	struct err err = { 0 };

	opts.dirfd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (exports_new(&opts, &b->x, &err))
		fail_msg("%s", err.text);
}

static void bench_open(struct bench *b, const char *drive)
{
	const struct reactor_opts opts = { .kind = REACTOR_THREADS };
	struct err err = { 0 };

	assert_int_equal(reactor_new(&opts, &b->r, NULL), 0);
	if (drive_claim(drive, "lab", NULL, &err) ||
	    drive_open(b->r, drive, "n1:d0", &b->drive, &err) ||
	    drive_component_create(b->drive, "other", SIZE, &err) ||
	    drive_component_create(b->drive, "c1", SIZE, &err))
		fail_msg("%s", err.text);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	char path[96];

	snprintf(b->dir, sizeof(b->dir), "base-test-export-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(path, sizeof(path), "%s/drive", b->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	bench_open(b, path);
	exports_make(b);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	char command[160];

	while (exports_any(b->x))
		reactor_run_once(b->r, 50 * MSEC_NS);
	exports_free(b->x);
	drive_close(b->drive);
	reactor_free(b->r);
	snprintf(command, sizeof(command), "rm -rf ./%s", b->dir);
	assert_int_equal(system(command), 0);
	free(b);
	return 0;
}

static struct export *export_start(struct bench *b, bool tcp)
{
	struct export_opts opts = { .name = "n1:d0:c1",
				    .address = tcp ? "127.0.0.1" : NULL,
				    .port_first = PORT,
				    .port_last = PORT + 99 };
	struct err err = { 0 };
	struct export *e = NULL;

	if (drive_component_hold(b->drive, "c1", &opts.where, &opts.fd, &err) ||
	    export_open(b->x, &opts, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static void set_flag(void *arg)
{
	*(bool *)arg = true;
}

static void export_end(struct bench *b, struct export *e)
{
	bool done = false;

	export_close(e, set_flag, &done);
	while (!done)
		reactor_run_once(b->r, UINT64_MAX);
}

/* ---- a client ----------------------------------------------------------- */

struct client {
	struct bdev *bdev;
	enum bdev_nbd_state state;
	char why[512];
	unsigned ups;
};

static void on_state(enum bdev_nbd_state state, const char *why, void *arg)
{
	struct client *c = arg;

	c->state = state;
	c->ups += state == BDEV_NBD_UP;
	if (*why)
		snprintf(c->why, sizeof(c->why), "%s", why);
}

/* As far.c does it. The key is in `f`, which does not live long. */
static void client_open(struct bench *b, struct client *c,
			const struct export_facts *f, uint64_t lost_ns)
{
	const struct bdev_nbd_opts opts = { .name = "n1:d0",
					    .size_bytes = SIZE,
					    .wait_ns = lost_ns,
					    .lost_ns = lost_ns,
					    .answer_ns = 2 * SEC_NS,
					    .state = on_state,
					    .arg = c };
	const struct bdev_nbd_target target = { .unix_path = f->unix_path,
						.address = f->address,
						.port = f->port,
						.key = f->key,
						.export_name = f->name,
						.boot = f->boot };
	struct err err = { 0 };

	*c = (struct client) { 0 };
	if (bdev_nbd_open(b->r, &opts, &c->bdev, &err) ||
	    bdev_nbd_target(c->bdev, &target, &err))
		fail_msg("%s", err.text);
}

static void client_until(struct bench *b, const struct client *c,
			 enum bdev_nbd_state state)
{
	while (c->state != state)
		reactor_run_once(b->r, UINT64_MAX);
}

static void client_start(struct bench *b, struct client *c,
			 const struct export *e)
{
	struct export_facts f;

	export_facts(e, &f);
	client_open(b, c, &f, 10 * SEC_NS);
	client_until(b, c, BDEV_NBD_UP);
}

static void block_fill(uint8_t *buf, unsigned seed)
{
	for (unsigned k = 0; k < 4096; k++)
		buf[k] = (uint8_t)(seed * 31 + k / 16 + 1);
}

static void block_write(struct client *c, uint64_t off, unsigned seed)
{
	uint8_t buf[4096];

	block_fill(buf, seed);
	assert_int_equal(
		bdev_io_sync(c->bdev, BDEV_WRITE, BDEV_FUA, off, buf, 4096), 0);
}

static void block_expect(struct bdev *bdev, uint64_t off, unsigned seed)
{
	uint8_t *buf = reactor_buf_alloc(bdev->reactor, 4096), want[4096];

	block_fill(want, seed);
	assert_int_equal(bdev_io_sync(bdev, BDEV_READ, 0, off, buf, 4096), 0);
	assert_memory_equal(buf, want, 4096);
	reactor_buf_free(bdev->reactor, buf, 4096);
}

/* ---- tests -------------------------------------------------------------- */

static void there_and_back(struct bench *b, bool tcp)
{
	struct export *e = export_start(b, tcp);
	struct bdev *local = NULL;
	struct client c;

	client_start(b, &c, e);
	block_write(&c, 0, 1);
	block_write(&c, SIZE - 4096, 2);
	block_expect(c.bdev, 0, 1);
	/* as long as it is lent, nobody opens or deletes it here */
	assert_int_equal(drive_component_open(b->drive, "c1", &local, NULL),
			 -EBUSY);
	assert_int_equal(drive_component_delete(b->drive, "c1", NULL), -EBUSY);
	bdev_close_sync(c.bdev);
	assert_int_equal(c.state, BDEV_NBD_CLOSED);
	export_end(b, e);
	assert_int_equal(drive_component_open(b->drive, "c1", &local, NULL), 0);
	block_expect(local, 0, 1);
	block_expect(local, SIZE - 4096, 2);
	/* and the other way round */
	{
		struct drive_where where;
		int fd;

		assert_int_equal(
			drive_component_hold(b->drive, "c1", &where, &fd, NULL),
			-EBUSY);
	}
	bdev_close_sync(local);
}

static void test_over_tls(void **state)
{
	there_and_back(*state, true);
}

static void test_over_a_unix_socket(void **state)
{
	there_and_back(*state, false);
}

/* A range of a claimed device, here an image: nothing beside it is touched. */
static void test_of_a_device(void **state)
{
	struct bench *b = *state;
	struct bdev *local = NULL;
	char path[96];
	int fd;

	drive_close(b->drive);
	reactor_free(b->r);
	exports_free(b->x);
	snprintf(path, sizeof(path), "%s/image", b->dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 64 * MIB), 0);
	close(fd);
	bench_open(b, path);
	exports_make(b);
	there_and_back(b, true);
	assert_int_equal(drive_component_open(b->drive, "other", &local, NULL),
			 0);
	for (uint64_t off = 0; off < SIZE; off += 4096) {
		uint8_t *buf = reactor_buf_alloc(b->r, 4096);

		assert_int_equal(
			bdev_io_sync(local, BDEV_READ, 0, off, buf, 4096), 0);
		for (unsigned k = 0; k < 4096; k++)
			assert_int_equal(buf[k], 0);
		reactor_buf_free(b->r, buf, 4096);
	}
	bdev_close_sync(local);
}

static void test_one_client_at_a_time(void **state)
{
	struct bench *b = *state;
	struct export *e = export_start(b, true);
	struct client one, two;
	struct export_facts f;

	client_start(b, &one, e);
	export_facts(e, &f);
	client_open(b, &two, &f, 10 * SEC_NS);
	client_until(b, &two, BDEV_NBD_LOST);
	block_write(&one, 0, 1);
	assert_int_equal(two.ups, 0);
	bdev_close_sync(one.bdev);
	client_until(b, &two, BDEV_NBD_UP);
	block_expect(two.bdev, 0, 1);
	bdev_close_sync(two.bdev);
	export_end(b, e);
}

struct many {
	struct io io[64];
	uint8_t buf[64][4096];
	unsigned left, round;
};

static void many_done(struct io *io)
{
	struct many *m = io->arg;

	assert_int_equal(io->result, 0);
	if (m->round) {
		m->round--;
		bdev_submit(io->bdev, io);
	} else {
		m->left--;
	}
}

static void many_start(struct many *m, struct bdev *bdev, unsigned rounds)
{
	m->left = 64;
	m->round = rounds;
	for (unsigned k = 0; k < 64; k++) {
		block_fill(m->buf[k], k);
		m->io[k] = (struct io) { .op = BDEV_WRITE,
					 .off = k * 4096,
					 .len = 4096,
					 .buf = m->buf[k],
					 .done = many_done,
					 .arg = m };
		bdev_submit(bdev, &m->io[k]);
	}
}

/* It dies with 64 writes in it, five times: nobody sees more than a pause. */
static void test_killed_under_load(void **state)
{
	struct bench *b = *state;
	struct export *e = export_start(b, true);
	struct many *m = calloc(1, sizeof(*m));
	struct export_facts f;
	struct client c;

	client_start(b, &c, e);
	for (unsigned kills = 1; kills <= 5; kills++) {
		many_start(m, c.bdev, 2000);
		while (m->round > 1000)
			reactor_run_once(b->r, UINT64_MAX);
		export_facts(e, &f);
		kill(f.pid, SIGKILL);
		while (m->left)
			reactor_run_once(b->r, UINT64_MAX);
		export_facts(e, &f);
		assert_int_equal(f.deaths, kills);
	}
	assert_int_equal(c.ups, 6);
	for (unsigned k = 0; k < 64; k++)
		block_expect(c.bdev, k * 4096, k);
	assert_non_null(strstr(b->said, "signal 9, and is started again"));
	bdev_close_sync(c.bdev);
	export_end(b, e);
	free(m);
}

/* ---- a member of a vDisk ------------------------------------------------- */

struct made {
	bool over;
	int result;
	struct bdev *vdisk;
	char why[512];
};

static void on_made(int result, const struct err *err, struct bdev *vdisk,
		    void *arg)
{
	struct made *m = arg;

	m->over = true;
	m->result = result;
	m->vdisk = vdisk;
	if (result)
		snprintf(m->why, sizeof(m->why), "%s", err->text);
}

static void made_wait(struct bench *b, const struct made *m)
{
	while (!m->over)
		reactor_run_once(b->r, UINT64_MAX);
	if (m->result)
		fail_msg("%s", m->why);
}

static void state_wait(struct bench *b, struct bdev *vdisk,
		       enum vdisk_state state)
{
	struct vdisk_info info;

	do {
		reactor_run_once(b->r, 20 * MSEC_NS);
		vdisk_info(vdisk, &info);
	} while (info.state != state);
}

/* Another one of a RAID-1, its label still to be written, or read. */
static struct bdev *far_member(struct bench *b, struct client *c,
			       struct export *e)
{
	struct export_facts f;

	export_facts(e, &f);
	client_open(b, c, &f, 300 * MSEC_NS);
	return c->bdev;
}

static void test_member_of_a_vdisk(void **state)
{
	struct bench *b = *state;
	struct export *e = export_start(b, true);
	struct vdisk_slot slot[3] = { { .domain = "n0" },
				      { .domain = "n1" },
				      { .domain = "n2" } };
	const struct vdisk_spec spec = {
		.cluster = "lab",
		.name = "db1",
		.size_bytes = 2 * MIB,
		.policy = { .raid = RAID_1,
			    .k = 1,
			    .m = 1,
			    .stripe_unit_bytes = 64 * KIB },
		.slot = slot,
		.slots = 3,
	};
	struct many *m = calloc(1, sizeof(*m));
	struct made made = { 0 }, back = { 0 }, same = { 0 };
	struct client c, again;
	uint64_t mismatches = 1;
	struct vdisk_slot gone;

	for (int k = 0; k < 3; k += 2)
		assert_int_equal(bdev_mem_open(b->r, "m", SIZE, 4096,
					       &slot[k].bdev, NULL),
				 0);
	slot[1].bdev = far_member(b, &c, e);
	vdisk_create(b->r, &spec, on_made, &made);
	made_wait(b, &made);
	many_start(m, made.vdisk, 1u << 30);
	while ((1u << 30) - m->round < 1000)
		reactor_run_once(b->r, UINT64_MAX);
	export_end(b, e); /* under load, for good */
	state_wait(b, made.vdisk, VDISK_DEGRADED);
	gone = slot[1];
	e = export_start(b, true);
	gone.bdev = far_member(b, &again, e);
	vdisk_replace(made.vdisk, 1, &gone, on_made, &back);
	made_wait(b, &back);
	state_wait(b, made.vdisk, VDISK_HEALTHY);
	m->round = 0;
	while (m->left)
		reactor_run_once(b->r, UINT64_MAX);
	vdisk_verify(made.vdisk, &mismatches, on_made, &same);
	made_wait(b, &same);
	assert_int_equal(mismatches, 0);
	for (unsigned k = 0; k < 64; k++)
		block_expect(made.vdisk, k * 4096, k);
	bdev_close_sync(made.vdisk);
	assert_int_equal(again.state, BDEV_NBD_CLOSED);
	export_end(b, e);
	free(m);
}

/* A busy client that dies may take nbdkit with it: the next one is served. */
static void test_client_killed(void **state)
{
	struct bench *b = *state;
	struct export *e = export_start(b, true);
	struct export_facts f;
	struct client c;
	int ready[2];
	char one;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		const struct reactor_opts opts = { .kind = REACTOR_THREADS };
		struct many *m = calloc(1, sizeof(*m));

		reactor_new(&opts, &b->r, NULL);
		client_start(b, &c, e);
		many_start(m, c.bdev, 1u << 30);
		while ((1u << 30) - m->round < 500)
			reactor_run_once(b->r, UINT64_MAX);
		(void)!write(ready[1], "r", 1);
		for (;;)
			reactor_run_once(b->r, UINT64_MAX);
	}
	assert_int_equal(read(ready[0], &one, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	client_start(b, &c, e);
	block_write(&c, 0, 9);
	export_facts(e, &f);
	print_message("  nbdkit died %u times of it\n", f.deaths);
	bdev_close_sync(c.bdev);
	export_end(b, e);
	close(ready[0]);
	close(ready[1]);
}

/* The same port, another key: who has the old one is out for good. */
static void test_rekeyed(void **state)
{
	struct bench *b = *state;
	struct export_opts opts = { .name = "n1:d0:c1",
				    .address = "127.0.0.1" };
	struct export *e = export_start(b, true);
	struct client old, new;
	struct export_facts f;
	struct bdev_nbd_target target;
	struct err err = { 0 };

	client_start(b, &old, e);
	block_write(&old, 0, 1);
	export_facts(e, &f);
	opts.port_first = opts.port_last = f.port;
	export_end(b, e);
	assert_int_equal(drive_component_hold(b->drive, "c1", &opts.where,
					      &opts.fd, &err),
			 0);
	if (export_open(b->x, &opts, &e, &err))
		fail_msg("%s", err.text);
	client_start(b, &new, e);
	client_until(b, &old, BDEV_NBD_LOST);
	block_write(&new, 0, 2);
	assert_int_equal(old.ups, 1);
	block_expect(new.bdev, 0, 2);
	bdev_close_sync(new.bdev);
	/* told the new key, it is let in */
	export_facts(e, &f);
	target = (struct bdev_nbd_target) { .address = f.address,
					    .port = f.port,
					    .key = f.key,
					    .boot = f.boot };
	assert_int_equal(bdev_nbd_target(old.bdev, &target, &err), 0);
	client_until(b, &old, BDEV_NBD_UP);
	block_expect(old.bdev, 0, 2);
	bdev_close_sync(old.bdev);
	export_end(b, e);
}

static bool file_has(const char *path, const char *text)
{
	char buf[65536];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));

	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(buf, (size_t)n, text, strlen(text));
}

static void test_key_is_told_to_nobody(void **state)
{
	struct bench *b = *state;
	struct export *e = export_start(b, true);
	char path[160], key[128];
	struct export_facts f;
	struct client c;
	struct stat st;

	client_start(b, &c, e);
	export_facts(e, &f);
	snprintf(key, sizeof(key), "%s", f.key);
	assert_int_equal(strlen(key), 64);
	kill(f.pid, SIGTERM); /* something for the log */
	block_write(&c, 0, 1);
	client_until(b, &c, BDEV_NBD_UP);
	export_facts(e, &f);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", f.pid);
	assert_true(file_has(path, "tls-psk"));
	assert_false(file_has(path, key));
	snprintf(path, sizeof(path), "/proc/%d/environ", f.pid);
	assert_false(file_has(path, key));
	assert_true(strlen(b->said) > 0);
	assert_null(strstr(b->said, key));
	assert_null(strstr(c.why, key));
	snprintf(path, sizeof(path), "%s/export/key-0", b->dir);
	assert_true(file_has(path, key));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(path, sizeof(path), "%s/export", b->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	bdev_close_sync(c.bdev);
	export_end(b, e);
	snprintf(path, sizeof(path), "[ -z \"$(ls %s/export)\" ]", b->dir);
	assert_int_equal(system(path), 0);
}

/* ---- an agent that is killed --------------------------------------------- */

static bool runs(pid_t pid)
{
	return !kill(pid, 0);
}

struct shared {
	struct export_facts f;
	char address[64], key[128], boot[64];
	pid_t pid; /* set last */
};

static _Noreturn void agent_run(struct bench *b, struct shared *s)
{
	const struct reactor_opts opts = { .kind = REACTOR_THREADS };
	struct export_facts f;

	reactor_new(&opts, &b->r, NULL);
	exports_make(b);
	export_facts(export_start(b, true), &f);
	s->f.port = f.port;
	snprintf(s->address, sizeof(s->address), "%s", f.address);
	snprintf(s->key, sizeof(s->key), "%s", f.key);
	snprintf(s->boot, sizeof(s->boot), "%s", f.boot);
	s->f.address = s->address;
	s->f.key = s->key;
	s->f.boot = s->boot;
	__atomic_store_n(&s->pid, f.pid, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Also while a client is in it, which nbdkit would rather wait for. */
static void test_dies_with_its_agent(void **state)
{
	struct bench *b = *state;
	struct drive_where where;
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct client c;
	pid_t agent;
	int fd = -1;

	exports_free(b->x);
	agent = fork();
	if (!agent)
		agent_run(b, s);
	while (!__atomic_load_n(&s->pid, __ATOMIC_ACQUIRE))
		usleep(1000);
	client_open(b, &c, &s->f, 300 * MSEC_NS);
	client_until(b, &c, BDEV_NBD_UP);
	block_write(&c, 0, 4);
	assert_true(runs(s->pid));
	kill(agent, SIGKILL);
	waitpid(agent, NULL, 0);
	client_until(b, &c, BDEV_NBD_DEAD);
	for (int k = 0; k < 5000 && fd < 0; k++) {
		if (drive_component_hold(b->drive, "c1", &where, &fd, NULL))
			usleep(1000);
	}
	assert_true(fd >= 0);
	close(fd);
	bdev_close_sync(c.bdev);
	exports_make(b);
	assert_null(strstr(b->said, "was ended"));
	munmap(s, 4096);
}

static void mark_write(const struct bench *b, const char *name, pid_t pid,
		       long long began)
{
	char command[400];

	snprintf(command, sizeof(command),
		 "echo %ld $(($(cut -d' ' -f22 /proc/%ld/stat) + %lld)) "
		 "$(cat /proc/sys/kernel/random/boot_id) >%s/export/pid-%s",
		 (long)pid, (long)pid, began, b->dir, name);
	assert_int_equal(system(command), 0);
}

static pid_t sleeper(void)
{
	const pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	return pid;
}

/* One that a killed agent has left is ended; a stranger with its pid is not. */
static void test_leftovers(void **state)
{
	struct bench *b = *state;
	const pid_t left = sleeper(), stranger = sleeper();
	char path[96];

	mark_write(b, "7", left, 0);
	mark_write(b, "8", stranger, -1);
	exports_free(b->x);
	exports_make(b);
	assert_int_equal(waitpid(left, NULL, WNOHANG), left);
	assert_int_equal(waitpid(stranger, NULL, WNOHANG), 0);
	assert_non_null(strstr(b->said, "was ended"));
	snprintf(path, sizeof(path), "[ -z \"$(ls %s/export)\" ]", b->dir);
	assert_int_equal(system(path), 0);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}

static void test_no_port_is_free(void **state)
{
	struct bench *b = *state;
	struct export *e = export_start(b, true), *none = NULL;
	struct export_opts opts = { .name = "x", .address = "127.0.0.1" };
	struct export_facts f;
	struct err err = { 0 };

	export_facts(e, &f);
	opts.port_first = opts.port_last = f.port;
	opts.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(export_open(b->x, &opts, &none, &err), -EADDRINUSE);
	opts.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	opts.address = "localhost";
	assert_int_equal(export_open(b->x, &opts, &none, &err), -EINVAL);
	opts.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	opts.address = "192.0.2.1"; /* nobody's */
	assert_int_equal(export_open(b->x, &opts, &none, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "192.0.2.1"));
	export_end(b, e);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_over_tls),
		TEST(test_over_a_unix_socket),
		TEST(test_of_a_device),
		TEST(test_one_client_at_a_time),
		TEST(test_killed_under_load),
		TEST(test_member_of_a_vdisk),
		TEST(test_client_killed),
		TEST(test_rekeyed),
		TEST(test_key_is_told_to_nobody),
		TEST(test_dies_with_its_agent),
		TEST(test_leftovers),
		TEST(test_no_port_is_free),
	};

	if (!nbd_conn_can() || system("nbdkit --version >/dev/null 2>&1")) {
		printf("no libnbd, or no nbdkit, here\n");
		return getenv("CI") ? 1 : 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
