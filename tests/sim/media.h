/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a drive of the simulator holds: a durable image, and for each sector
 * written since the last flush the chain of what was written, the newest of
 * which is read. A power cut leaves any of them, sector by sector, and may
 * shear one.
 *
 *   sector --> newest --> older --> older     volatile
 *     \------> durable
 *
 * Known to media.c and drive.c alone.
 */
#ifndef TESTS_SIM_MEDIA_H
#define TESTS_SIM_MEDIA_H

#include "tests/sim/sim.h"

#define RECENT 512u
enum { BAD = 1, SHORN };

struct version {
	struct version *older;
	uint64_t seq; /* order of landing */
	uint8_t data[SIM_SECTOR];
};

/* A sector that does not durably hold what it should. */
struct rot {
	struct rot *next;
	uint64_t sector;
	bool again; /* written, with the very same that is wrong */
	bool seen;  /* read: who did may put it back with what lies around */
	uint8_t right[SIM_SECTOR];
};

struct sim_media {
	uint8_t *durable;
	struct version **newest; /* by sector */
	uint64_t *dirty;         /* sectors with a chain */
	size_t dirties, dirty_room;
	uint8_t *bad;            /* by sector: reads fail */
	uint64_t recent[RECENT]; /* sectors, the last ones written */
	unsigned recents;
	struct version *spare;
	struct rot *rot;
	uint64_t seq;
};

struct ghost;

/* data NULL: zeros. Volatile, or durable with all that came before it gone. */
void media_land(struct sim_drive *d, uint64_t s, const uint8_t *data);
void media_set(struct sim_drive *d, uint64_t s, const uint8_t *data);
/* What is volatile of a sector; media_sweep() when all are done. */
void media_forget(struct sim_media *m, uint64_t s);
void media_sweep(struct sim_media *m);
const uint8_t *media_visible(struct sim_media *m, uint64_t s);
void media_read(struct sim_drive *d, uint64_t s, uint8_t *buf);
/* Who has read there is gone, and writes no more. */
void media_unsee(struct sim_drive *d);
/* What landed up to seq becomes durable. */
void media_flush(struct sim_drive *d, uint64_t seq);
void media_cut(struct sim_drive *d);
void media_power_cut(struct sim_drive *d);
/* Makes a sector hold data though it should hold `right`. */
void media_rot(struct sim_drive *d, uint64_t s, const uint8_t *right,
	       const uint8_t *data);
void media_damage_tell(struct sim_drive *d, uint64_t off);
void sim_ghost_free(struct ghost *g);

#endif
