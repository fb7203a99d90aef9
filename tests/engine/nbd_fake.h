/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An NBD server in a process of its own, which says what a test wants: other
 * facts than were stated, or rubbish from some stage on. It keeps what is
 * written in memory.
 */
#ifndef TESTS_ENGINE_NBD_FAKE_H
#define TESTS_ENGINE_NBD_FAKE_H

#include <stdint.h>
#include <sys/types.h>

/* Transmission flags of the protocol. */
#define FAKE_HAS 0x0001u
#define FAKE_READ_ONLY 0x0002u
#define FAKE_FLUSH 0x0004u
#define FAKE_FUA 0x0008u
#define FAKE_TRIM 0x0020u
#define FAKE_ZERO 0x0040u
#define FAKE_ALL (FAKE_FLUSH | FAKE_FUA | FAKE_TRIM | FAKE_ZERO)

/* From where on it misbehaves. */
enum {
	FAKE_NEVER,
	FAKE_FIRST,
	FAKE_GREETING = FAKE_FIRST, /* in the place of the magic */
	FAKE_FLAGS,                 /* of the options it has */
	FAKE_OPTION,                /* in the place of a reply to one */
	FAKE_INFO,                  /* in it */
	FAKE_REPLY,                 /* in the place of a reply's magic */
	FAKE_COOKIE,                /* of a command that was never sent */
	FAKE_DATA,                  /* short of what was asked */
	FAKE_STAGES,
};
/* And how. */
enum { FAKE_NOISE, FAKE_SILENCE, FAKE_HANG_UP, FAKE_HOWS };

struct fake {
	uint64_t size;
	uint32_t block_min, request_max; /* 0: not told */
	unsigned flags;
	int stage, how;
};

enum {
	FAKE_COUNT_READ,
	FAKE_COUNT_WRITE,
	FAKE_COUNT_FLUSH,
	FAKE_COUNT_FUA,
	FAKE_COUNTS,
};

/* One at a time. Listens when it returns. */
pid_t fake_start(const struct fake *fake);
/* Passes bytes on, both ways, to a socket of this path. */
pid_t fake_proxy(const char *path);
const char *fake_path(void);
/* What the server has been asked, since fake_start(). */
unsigned fake_count(int which);
void fake_end(pid_t pid);

#endif
