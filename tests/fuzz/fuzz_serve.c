/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes that a holder of an exported vDisk's socket may send, in pieces as the
 * first byte says. */
#include <sys/socket.h>
#include <unistd.h>

#include "backend/agent/serve.h"
#include "engine/bdev/mem.h"

#define SIZE (256 * KIB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

/* What is answered is thrown away, so that nobody waits for room. */
static void drain(int fd)
{
	char bytes[65536];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void feed(struct reactor *r, int fd, const uint8_t *data, size_t size,
		 size_t piece)
{
	while (size) {
		const size_t n = piece < size ? piece : size;
		const ssize_t sent =
			send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return;
		data += sent > 0 ? sent : 0;
		size -= sent > 0 ? (size_t)sent : 0;
		reactor_run_once(r, 0);
		reactor_run_once(r, 0);
		drain(fd);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reactor *r;
	static struct bdev *bdev;
	struct serve *s;
	bool closed = false;
	int fd;

	if (!size)
		return 0;
	if (!r) {
		const struct reactor_opts opts = { .kind = REACTOR_THREADS,
						   .workers = 1 };

		id_assert(!reactor_new(&opts, &r, NULL));
		id_assert(!bdev_mem_open(r, "mem", SIZE, 4096, &bdev, NULL));
	}
	id_assert(!serve_new(bdev, &s));
	fd = serve_connect(s);
	id_assert(fd >= 0);
	feed(r, fd, data + 1, size - 1, 1 + 17u * data[0]);
	close(fd);
	serve_close(s, on_closed, &closed);
	while (!closed)
		reactor_run_once(r, SEC_NS);
	id_assert(!bdev->stats.inflight);
	return 0;
}
