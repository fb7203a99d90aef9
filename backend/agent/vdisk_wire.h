/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the plugin of nbdkit and the agent say to each other of an exported
 * vDisk: both on one machine, of one build, so bytes stand as in memory.
 *
 * There is one socket that the plugin was started with. A byte sent over it
 * brings another byte back, with a new socket beside it; without one, there
 * are too many. On such a socket one request follows the answer to the last:
 * who wants many at once has many sockets.
 *
 *   ask                  told
 *   ask, data            told             WRITE
 *   ask                  told, data       READ, when its result is 0
 *   ask                  told, size       SIZE
 */
#ifndef BACKEND_AGENT_VDISK_WIRE_H
#define BACKEND_AGENT_VDISK_WIRE_H

#include <stdint.h>

#define VDISK_WIRE_MAGIC 0x6b64566bu
#define VDISK_WIRE_CONNS 64       /* most at once */
#define VDISK_WIRE_MAX (1u << 20) /* bytes in one READ, WRITE or ZERO */

enum vdisk_wire_op {
	VDISK_WIRE_SIZE = 1,
	VDISK_WIRE_READ,
	VDISK_WIRE_WRITE,
	VDISK_WIRE_ZERO, /* writes zeros, which do not travel */
	VDISK_WIRE_TRIM,
	VDISK_WIRE_FLUSH,
};
#define VDISK_WIRE_FUA 1u /* of WRITE, ZERO, TRIM */

struct vdisk_wire_ask {
	uint32_t magic;
	uint8_t op, flags;
	uint16_t zero;
	uint64_t off;
	uint32_t len, zero2;
};

struct vdisk_wire_told {
	uint32_t magic;
	int32_t result; /* 0 or a negative errno */
};

struct vdisk_wire_size {
	uint64_t size_bytes;
	uint32_t block_bytes, most_bytes; /* of a READ, WRITE or ZERO */
	uint32_t can_trim, zero;
};

#endif
