/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * nbdkit's plugin for an exported vDisk: a thin client of the agent that owns
 * it (backend/agent/vdisk_wire.h). The agent starts nbdkit with a socket and
 * says which: `fd=3`. Each of nbdkit's threads takes a connection of its own
 * from the pool, so as many requests fly as there are threads, and data goes
 * from nbdkit's buffer to the socket and back without a copy here.
 */
#define NBDKIT_API_VERSION 2
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <nbdkit-plugin.h>

#include "backend/agent/vdisk_wire.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
static int control = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t put = PTHREAD_COND_INITIALIZER;
static int pool[VDISK_WIRE_CONNS]; /* connections that nobody uses */
static unsigned pooled, made;
static struct vdisk_wire_size size;

/* ---- bytes -------------------------------------------------------------- */

/* All of iov, or -1 with errno. */
static int send_all(int fd, struct iovec *iov, int count)
{
	while (count) {
		const struct msghdr m = { .msg_iov = iov,
					  .msg_iovlen = (size_t)count };
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		while (count && (size_t)n >= iov->iov_len) {
			n -= (ssize_t)iov->iov_len;
			iov++;
			count--;
		}
		if (count) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

static int receive_all(int fd, void *buf, size_t len)
{
	char *at = buf;

	while (len) {
		ssize_t n = recv(fd, at, len, MSG_WAITALL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : ESHUTDOWN;
			return -1;
		}
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- connections -------------------------------------------------------- */

/* A new one from the agent, with the lock held. */
static int connection_new(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space;
	char byte = 'c';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space.bytes,
			    .msg_controllen = sizeof(space.bytes) };
	const struct cmsghdr *h;
	ssize_t n;
	int fd = -1;

	if (send(control, &byte, 1, MSG_NOSIGNAL) != 1)
		return -1;
	do
		n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	h = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
	if (h && h->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	else
		errno = n == 1 ? EBUSY : ESHUTDOWN;
	return fd;
}

/* Waits for one while all are in use. */
static int connection_get(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	while (!pooled && made == VDISK_WIRE_CONNS)
		pthread_cond_wait(&put, &lock);
	if (pooled) {
		fd = pool[--pooled];
	} else {
		fd = connection_new();
		made += fd >= 0;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

static void connection_put(int fd, bool good)
{
	pthread_mutex_lock(&lock);
	if (good)
		pool[pooled++] = fd;
	else
		made--;
	pthread_cond_signal(&put);
	pthread_mutex_unlock(&lock);
	if (!good)
		close(fd);
}

/* One request and its answer: out goes with it, in comes with the answer. */
static int talk(const struct vdisk_wire_ask *ask, const void *out,
		size_t out_len, void *in, size_t in_len)
{
	struct iovec iov[2] = {
		{ (void *)(uintptr_t)ask, sizeof(*ask) },
		{ (void *)(uintptr_t)out, out_len },
	};
	struct vdisk_wire_told told = { 0 };
	int fd = connection_get();

	if (fd < 0) {
		nbdkit_error("no connection to the agent: %s", strerror(errno));
		return -1;
	}
	if (send_all(fd, iov, out_len ? 2 : 1) ||
	    receive_all(fd, &told, sizeof(told)) ||
	    told.magic != VDISK_WIRE_MAGIC ||
	    (!told.result && in_len && receive_all(fd, in, in_len))) {
		nbdkit_error("the agent has taken the vDisk away");
		nbdkit_set_error(ESHUTDOWN);
		connection_put(fd, false);
		return -1;
	}
	connection_put(fd, true);
	if (!told.result)
		return 0;
	nbdkit_set_error(-told.result);
	nbdkit_error("the vDisk answers: %s", strerror(-told.result));
	return -1;
}

static int ask(enum vdisk_wire_op op, uint32_t flags, uint64_t off,
	       uint32_t len, const void *out, void *in)
{
	const struct vdisk_wire_ask a = {
		.magic = VDISK_WIRE_MAGIC,
		.op = (uint8_t)op,
		.flags = flags & NBDKIT_FLAG_FUA ? VDISK_WIRE_FUA : 0,
		.off = off,
		.len = len,
	};

	return talk(&a, out, out ? len : 0, in, in ? len : 0);
}

/* In pieces that one request may have. */
static int ask_pieces(enum vdisk_wire_op op, uint32_t flags, uint64_t off,
		      uint32_t len, const char *out, char *in)
{
	while (len) {
		const uint32_t n =
			len < size.most_bytes ? len : size.most_bytes;

		if (ask(op, flags, off, n, out, in))
			return -1;
		off += n;
		len -= n;
		out = out ? out + n : NULL;
		in = in ? in + n : NULL;
	}
	return 0;
}

/* ---- nbdkit's side ------------------------------------------------------ */

static int vdisk_config(const char *key, const char *value)
{
	if (strcmp(key, "fd") != 0) {
		nbdkit_error("unknown parameter %s", key);
		return -1;
	}
	if (nbdkit_parse_int("fd", value, &control))
		return -1;
	return fcntl(control, F_SETFD, FD_CLOEXEC);
}

static int vdisk_config_complete(void)
{
	const struct vdisk_wire_ask a = { .magic = VDISK_WIRE_MAGIC,
					  .op = VDISK_WIRE_SIZE };

	if (control < 0) {
		nbdkit_error("fd= is missing: this plugin is started by "
			     "iodeck-agent alone");
		return -1;
	}
	return talk(&a, NULL, 0, &size, sizeof(size));
}

static void *vdisk_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t vdisk_get_size(void *handle)
{
	(void)handle;
	return (int64_t)size.size_bytes;
}

static int vdisk_block_size(void *handle, uint32_t *minimum,
			    uint32_t *preferred, uint32_t *maximum)
{
	(void)handle;
	*minimum = size.block_bytes;
	*preferred = size.block_bytes < 4096 ? 4096 : size.block_bytes;
	*maximum = 32u << 20;
	return 0;
}

static int vdisk_yes(void *handle)
{
	(void)handle;
	return 1;
}

static int vdisk_can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int vdisk_can_trim(void *handle)
{
	(void)handle;
	return size.can_trim != 0;
}

static int vdisk_pread(void *handle, void *buf, uint32_t count, uint64_t off,
		       uint32_t flags)
{
	(void)handle;
	return ask_pieces(VDISK_WIRE_READ, flags, off, count, NULL, buf);
}

static int vdisk_pwrite(void *handle, const void *buf, uint32_t count,
			uint64_t off, uint32_t flags)
{
	(void)handle;
	return ask_pieces(VDISK_WIRE_WRITE, flags, off, count, buf, NULL);
}

static int vdisk_zero(void *handle, uint32_t count, uint64_t off,
		      uint32_t flags)
{
	(void)handle;
	return ask_pieces(VDISK_WIRE_ZERO, flags, off, count, NULL, NULL);
}

/* What is no whole block stays as it is: a trim is a hint. */
static int vdisk_trim(void *handle, uint32_t count, uint64_t off,
		      uint32_t flags)
{
	const uint64_t block = size.block_bytes;
	const uint64_t from = (off + block - 1) / block * block;
	const uint64_t to = (off + count) / block * block;

	(void)handle;
	return from >= to ? 0
			  : ask(VDISK_WIRE_TRIM, flags, from,
				(uint32_t)(to - from), NULL, NULL);
}

static int vdisk_flush(void *handle, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return ask(VDISK_WIRE_FLUSH, 0, 0, 0, NULL, NULL);
}

static struct nbdkit_plugin plugin = {
	.name = "iodeck",
	.longname = "a vDisk of iodeck",
	.version = IODECK_VERSION,
	.config = vdisk_config,
	.config_complete = vdisk_config_complete,
	.open = vdisk_open,
	.get_size = vdisk_get_size,
	.block_size = vdisk_block_size,
	.can_write = vdisk_yes,
	.can_flush = vdisk_yes,
	.can_fua = vdisk_can_fua,
	.can_trim = vdisk_can_trim,
	.can_zero = vdisk_yes,
	.can_multi_conn = vdisk_yes, /* a flush covers what all have written */
	.pread = vdisk_pread,
	.pwrite = vdisk_pwrite,
	.zero = vdisk_zero,
	.trim = vdisk_trim,
	.flush = vdisk_flush,
};

NBDKIT_REGISTER_PLUGIN(plugin)
