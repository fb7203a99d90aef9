/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "nbd_fake.h"

#include <endian.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base.h"

static char sock_path[64];
static unsigned *counts; /* shared with the child */

const char *fake_path(void)
{
	return sock_path;
}

unsigned fake_count(int which)
{
	return __atomic_load_n(&counts[which], __ATOMIC_ACQUIRE);
}

/* ---- bytes -------------------------------------------------------------- */

/* The client went: so does whoever served it. */
static _Noreturn void over(void)
{
	_exit(0);
}

static void put(int fd, const void *buf, size_t len)
{
	const char *at = buf;

	while (len) {
		const ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n <= 0)
			over();
		at += n;
		len -= (size_t)n;
	}
}

static void get(int fd, void *buf, size_t len)
{
	char *at = buf;

	while (len) {
		const ssize_t n = recv(fd, at, len, 0);

		if (n <= 0)
			over();
		at += n;
		len -= (size_t)n;
	}
}

static void put64(int fd, uint64_t v)
{
	v = htobe64(v);
	put(fd, &v, 8);
}

static void put32(int fd, uint32_t v)
{
	v = htobe32(v);
	put(fd, &v, 4);
}

static void put16(int fd, unsigned v)
{
	const uint16_t w = htobe16((uint16_t)v);

	put(fd, &w, 2);
}

static uint32_t get32(int fd)
{
	uint32_t v;

	get(fd, &v, 4);
	return be32toh(v);
}

static uint64_t get64(int fd)
{
	uint64_t v;

	get(fd, &v, 8);
	return be64toh(v);
}

/* ---- misbehaviour ------------------------------------------------------- */

static void misbehave(const struct fake *f, int fd, int stage)
{
	uint8_t noise[4096];

	if (f->stage != stage)
		return;
	for (size_t k = 0; k < sizeof(noise); k++)
		noise[k] = (uint8_t)(k * 167 + (k >> 3) * 13 + 91);
	if (f->how == FAKE_NOISE) {
		put(fd, noise, sizeof(noise));
		for (;;) /* takes all there is, answers no more */
			get(fd, noise, 1);
	}
	if (f->how == FAKE_SILENCE)
		for (;;)
			get(fd, noise, 1);
	over();
}

/* ---- the handshake ------------------------------------------------------ */

#define REPLY_MAGIC 0x3e889045565a9ull
#define OPT_ABORT 2
#define OPT_GO 7

static void option_reply(int fd, uint32_t option, uint32_t type, uint32_t len)
{
	put64(fd, REPLY_MAGIC);
	put32(fd, option);
	put32(fd, type);
	put32(fd, len);
}

static void go(const struct fake *f, int fd, uint32_t option)
{
	option_reply(fd, option, 3, 12); /* NBD_REP_INFO: the export */
	put16(fd, 0);
	misbehave(f, fd, FAKE_INFO);
	put64(fd, f->size);
	put16(fd, FAKE_HAS | f->flags);
	if (f->block_min || f->request_max) {
		option_reply(fd, option, 3, 14); /* its blocks */
		put16(fd, 3);
		put32(fd, f->block_min ? f->block_min : 1);
		put32(fd, 4096);
		put32(fd, f->request_max ? f->request_max : 32u << 20);
	}
	option_reply(fd, option, 1, 0);
}

static void shake(const struct fake *f, int fd)
{
	uint8_t data[4096];

	misbehave(f, fd, FAKE_GREETING);
	put(fd, "NBDMAGICIHAVEOPT", 16);
	misbehave(f, fd, FAKE_FLAGS);
	put16(fd, 3); /* fixed newstyle, no zeroes */
	get32(fd);
	for (;;) {
		uint32_t option, len;

		get64(fd);
		option = get32(fd);
		len = get32(fd);
		if (len > sizeof(data))
			over();
		get(fd, data, len);
		misbehave(f, fd, FAKE_OPTION);
		if (option == OPT_GO) {
			go(f, fd, option);
			return;
		}
		option_reply(fd, option, option == OPT_ABORT ? 1 : 0x80000001u,
			     0);
		if (option == OPT_ABORT)
			over();
	}
}

/* ---- commands ----------------------------------------------------------- */

static void count(int which)
{
	__atomic_add_fetch(&counts[which], 1, __ATOMIC_RELEASE);
}

static void reply(const struct fake *f, int fd, uint64_t cookie)
{
	misbehave(f, fd, FAKE_REPLY);
	put32(fd, 0x67446698);
	put32(fd, 0);
	if (f->stage == FAKE_COOKIE) {
		put64(fd, cookie + 77);
		misbehave(f, fd, FAKE_COOKIE);
	}
	put64(fd, cookie);
}

static void command(const struct fake *f, int fd, uint8_t *disk)
{
	uint16_t words[2];
	uint64_t cookie, off;
	uint32_t len;

	if (get32(fd) != 0x25609513)
		over();
	get(fd, words, 4);
	cookie = get64(fd);
	off = get64(fd);
	len = get32(fd);
	if (off > f->size || (be16toh(words[1]) <= 1 && len > f->size - off))
		over();
	switch (be16toh(words[1])) {
	case 0:
		count(FAKE_COUNT_READ);
		reply(f, fd, cookie);
		put(fd, disk + off, f->stage == FAKE_DATA ? len / 2 : len);
		misbehave(f, fd, FAKE_DATA);
		return;
	case 1:
		count(FAKE_COUNT_WRITE);
		if (be16toh(words[0]) & 1)
			count(FAKE_COUNT_FUA);
		get(fd, disk + off, len);
		break;
	case 3:
		count(FAKE_COUNT_FLUSH);
		break;
	default: /* it ends */
		over();
	}
	reply(f, fd, cookie);
}

static _Noreturn void serve(const struct fake *f, int fd)
{
	uint8_t *disk = calloc(1, f->size);

	shake(f, fd);
	while (disk)
		command(f, fd, disk);
	over();
}

/* ---- a proxy ------------------------------------------------------------ */

static _Noreturn void pass_on(const char *path, int fd)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct pollfd both[2] = { { .fd = fd, .events = POLLIN },
				  { .events = POLLIN } };
	char buf[65536];

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	both[1].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(both[1].fd, (struct sockaddr *)&at, sizeof(at)))
		over();
	while (poll(both, 2, -1) > 0)
		for (int k = 0; k < 2; k++) {
			ssize_t n;

			if (!both[k].revents)
				continue;
			n = recv(both[k].fd, buf, sizeof(buf), 0);
			if (n <= 0)
				over();
			put(both[!k].fd, buf, (size_t)n);
		}
	over();
}

/* ---- the process -------------------------------------------------------- */

static int listen_here(void)
{
	static unsigned serial;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sock_path, sizeof(sock_path), "base-test-fake-%d-%u",
		 (int)getpid(), serial++);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", sock_path);
	id_assert(!bind(fd, (struct sockaddr *)&at, sizeof(at)) &&
		  !listen(fd, 8));
	return fd;
}

/* One client after the other, as an exporter does. path: a proxy to it. All
 * of one process group, which is the first one's, so that all can be stopped.*/
static pid_t start(const struct fake *fake, const char *path)
{
	const int fd = listen_here();
	pid_t pid;

	if (!counts)
		counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(counts, 0, FAKE_COUNTS * sizeof(*counts));
	pid = fork();
	id_assert(pid >= 0);
	if (pid) {
		setpgid(pid, pid);
		close(fd);
		return pid;
	}
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		const int client = accept(fd, NULL, NULL);
		const pid_t one = fork();

		if (!one) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (path)
				pass_on(path, client);
			serve(fake, client);
		}
		close(client);
		waitpid(one, NULL, 0);
	}
}

pid_t fake_start(const struct fake *fake)
{
	return start(fake, NULL);
}

pid_t fake_proxy(const char *path)
{
	return start(NULL, path);
}

void fake_end(pid_t pid)
{
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(sock_path);
}
