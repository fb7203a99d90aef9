/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a TCP connection between two agents carries, and how long a message
 * takes: one listens for a moment, the other measures. A token, which the
 * console gives to both, lets nobody else in.
 *
 *   measures                              listens
 *   hello: magic, token  ---------------> closes unless it is right
 *                        <--------------- '+'
 *   ping                 ---------------> the same back, many times
 *   data, data, .. end   ---------------> counts
 *                        <--------------- report: bytes, nanoseconds
 *   send                 --------------->
 *   counts               <--------------- data, data, .. end
 *
 * A frame is a type, a length (4 bytes, big endian) and as many bytes.
 *
 * Threads: each call blocks, for a bounded time, on whose it is; `stop` may be
 * set by another and ends it within a tenth of a second.
 */
#ifndef BACKEND_AGENT_LINK_TEST_H
#define BACKEND_AGENT_LINK_TEST_H

#include <stdatomic.h>
#include <sys/types.h>

#include "engine/base.h"

#define LINK_TOKEN_MIN 16
#define LINK_TOKEN_MAX 64
#define LINK_SECONDS_MIN 0.1
#define LINK_SECONDS_MAX 30.0

struct link_figures {
	double out_bytes_s, in_bytes_s; /* from here, to here */
	double rtt_min_us, rtt_median_us;
	int round_trips;
};

/*
 * A socket that listens at a port from `from` to `to` (0 and 0: any that is
 * free) of a numeric address ("": all of this machine), or a negative errno
 * with err.
 */
int link_open(const char *address, int from, int to, int *port,
	      struct err *err);
/* Serves who knows the token, once, and takes the socket. For at most
 * `seconds` to come, and as long again with some seconds to be measured. */
void link_serve(int fd, const char *token, double seconds,
		const atomic_bool *stop);
int link_measure(const char *address, int port, const char *token,
		 double seconds, const atomic_bool *stop,
		 struct link_figures *figures, struct err *err);

/* ---- the bytes, for the fuzzer ------------------------------------------- */

#define LINK_MAGIC "iodklnk1"
#define LINK_HELLO_BYTES (8 + LINK_TOKEN_MAX)
#define LINK_FRAME_MAX (256u * 1024)
#define LINK_HEAD_BYTES 5
#define LINK_SMALL_MAX 64 /* of all frames but data */

enum link_type {
	LINK_PING = 'P',
	LINK_DATA = 'D',
	LINK_END = 'E',
	LINK_REPORT = 'R',
	LINK_SEND = 'S',
};

struct link_frames {
	uint8_t head[LINK_HEAD_BYTES], body[LINK_SMALL_MAX];
	size_t have; /* bytes of head and body */
	uint32_t len, data_left;
};

void link_hello(uint8_t hello[LINK_HELLO_BYTES], const char *token);
/* In a time that does not depend on where they differ. */
bool link_hello_right(const uint8_t hello[LINK_HELLO_BYTES], const char *token);
/*
 * Takes bytes in. Data is counted in parts as it comes, and not kept:
 * frame(LINK_DATA, NULL, n); others are told whole. Stops behind a frame for
 * which frame() returns false. Returns how many bytes were taken; -EPROTO: no
 * frame begins so.
 */
ssize_t link_frames_feed(struct link_frames *f, const void *bytes, size_t len,
			 bool (*frame)(enum link_type type, const uint8_t *body,
				       uint32_t len, void *arg),
			 void *arg);

#endif
