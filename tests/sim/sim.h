/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A world in which a vDisk layout is put to the test: the engine's own code on
 * the simulated reactor, over drives that lose, tear, reorder, damage and
 * refuse, with an oracle that knows what each sector may hold.
 *
 *   run.c    one seed: load, crashes, the end
 *   fault.c  what else goes wrong, within the budget
 *   oracle.c what may be read (oracle.h)
 *   client   a layout behind struct sim_client: inplace.c
 *   drive.c  the drives: a durable and a volatile image, faults
 *
 * One seed is one run: everything random comes from it. A violation prints
 * the seed and the time and ends the process.
 *
 * The budget: drives that are away, damaged or not yet whole again are never
 * more than the layout tolerates. Within it nothing acknowledged may be lost,
 * no I/O may fail, and the vDisk must open. In some seeds more drives go than
 * that (`beyond`): then I/O may fail and the vDisk be refused, but what it
 * says is right, and once the drives are back nothing is lost either.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "engine/bdev/bdev.h"
#include "engine/rng.h"

#define SIM_SECTOR 512u
#define SIM_BLOCK 4096u
#define SIM_DRIVES_MAX 32
#define SIM_EXIT_VIOLATION 3

struct sim;
struct oracle;

/* ---- drives: drive.c ---------------------------------------------------- */

/* What happens once, to the next I/O of the kind; armed by the runner. */
enum sim_once {
	SIM_ONCE_NONE,
	SIM_READ_ERROR,   /* -EIO, the data is fine */
	SIM_WRITE_ERROR,  /* -EIO, and any of it may have landed */
	SIM_WRITE_FULL,   /* -ENOSPC, as above */
	SIM_FLUSH_ERROR,  /* -EIO; of what was not durable any may be dropped,
			     and the next flush succeeds all the same */
	SIM_WRITE_LOST,   /* success, nothing lands */
	SIM_WRITE_ASTRAY, /* success, lands elsewhere */
	SIM_STUCK,        /* does not end until the drive goes or is freed */
	SIM_ONCES,
};

struct sim_range {
	uint64_t off, len; /* bytes */
};

struct sim_drive {
	struct sim *sim;
	unsigned index;
	uint64_t bytes;
	bool away;            /* nothing there: opening fails */
	struct bdev *handle;  /* the one open, NULL: none */
	double slow;          /* factor on latencies */
	enum sim_once once;   /* armed */
	bool hurt;            /* failed an I/O; until the handle is closed */
	bool struck;          /* had any fault since the handle was opened */
	uint64_t read_clock;  /* of the oracle, at the last failed read */
	unsigned bad, rotten; /* sectors that read -EIO; that hold rubbish */
	struct sim_media *media;
	struct ghost *ghosts; /* a planted fault: see sim_ghosts */
};

int sim_drive_init(struct sim_drive *d, struct sim *sim, unsigned index,
		   uint64_t bytes);
void sim_drive_fini(struct sim_drive *d);
/* Exclusive: -EBUSY while another handle is not closed; -ENODEV away. */
int sim_drive_open(struct sim_drive *d, struct bdev **bdev);
/* Goes: handles die, what is in flight ends in -ENODEV and may have landed.
 * power: what was not durable is lost in part. */
void sim_drive_leave(struct sim_drive *d, bool power);
void sim_drive_return(struct sim_drive *d);
/* The owner is gone, with or without all power: see run.c. */
void sim_drive_crash(struct sim_drive *d, bool power);
void sim_drive_free_stuck(struct sim_drive *d);
/* Holds an I/O that will not end by itself: a layout may time it out. */
bool sim_drive_stuck(const struct sim_drive *d);
/* Sectors of a range go bad (-EIO until written) or rot. */
void sim_drive_damage(struct sim_drive *d, struct sim_range range, bool rot);
/* As if no sector had ever been damaged; but rot that was read on a connection
 * that lasts, or is written just now, stays: it may be put back. */
void sim_drive_heal(struct sim_drive *d);
/* What a read would see. */
void sim_drive_peek(struct sim_drive *d, uint64_t off, uint8_t *buf,
		    uint32_t len);
/* Zeros, durable: an operator deletes what stands there. */
void sim_drive_wipe(struct sim_drive *d);
/* Some write in flight is of what the client calls hot, or of an opening. */
bool sim_drive_hot(const struct sim_drive *d);
/* A sector that was written lately; some other when there is none. */
uint64_t sim_drive_recent(struct sim_drive *d);
/* A fault of the world, planted: what was in flight when a connection ended
 * may land later, even after the drive has been opened again. */
extern bool sim_ghosts;

/* ---- a layout under test ------------------------------------------------- */

struct sim_promise {
	bool durable_ack; /* an acknowledged write is durable, without FLUSH */
	bool atomic;      /* a block of SIM_BLOCK is never torn by a crash */
	bool checksums;   /* damage is found: rot and stray writes anywhere */
	bool trim;        /* TRIM reads as zeros */
	bool failsafe;    /* full redundancy at any crash: no write hole */
};

struct sim_client {
	const struct sim_client_ops *ops;
	struct sim *sim;
	struct sim_promise promise;
	uint64_t bytes;    /* of the vDisk */
	uint32_t io_bytes; /* granularity of I/O: 512 or 4096 */
	unsigned drives;
	uint64_t drive_bytes;
	/* What is written in a row stands `chunk_bytes` here, the next
	 * `stride_bytes` further on; 0: everything in a row. bytes is without
	 * what lies between. */
	uint64_t chunk_bytes, stride_bytes;
	unsigned crash_factor; /* on the profile's; 0: 1 */
	bool full;             /* it may run out of space: -ENOSPC */
};

/*
 * create, open and close are asynchronous: sim_up() or sim_down() later. Crash
 * may come in between; drop() then brings the instance to its end: its handles
 * are dead, it can do no harm, and it is freed when drop() returns.
 */
struct sim_client_ops {
	const char *name;
	struct sim_client *(*make)(struct sim *sim); /* by seed and profile */
	void (*free)(struct sim_client *c);
	void (*create)(struct sim_client *c);
	void (*open)(struct sim_client *c);
	void (*close)(struct sim_client *c);
	void (*drop)(struct sim_client *c);
	void (*tick)(struct sim_client *c, bool calm); /* management; calm: no
						 more than needed to rest */
	/* Drives it could not do without just now, beside those away. */
	uint32_t (*sick)(struct sim_client *c);
	bool (*tolerates)(struct sim_client *c, uint32_t mask);
	/* Whether a crash may come with writes under way. */
	bool (*crash_ok)(struct sim_client *c);
	void (*crashed)(struct sim_client *c, bool busy);
	bool (*fragile)(struct sim_client *c); /* no new fault just now */
	bool (*hot)(struct sim_client *c, uint64_t off, uint64_t len);
	bool (*damage_ok)(struct sim_client *c, uint64_t off, bool rot);
	/* It happened. NULL: of no interest. */
	void (*damaged)(struct sim_client *c, unsigned drive, uint64_t off);
	/* A write is submitted to a drive. NULL: of no interest. */
	void (*writing)(struct sim_client *c, unsigned drive, uint64_t off);
	/* Create was cut short: what it left behind. NULL: not to be tried. */
	void (*open_half)(struct sim_client *c);
	bool (*rested)(struct sim_client *c); /* nothing left to do */
	/* What it is about, for who asks why not. */
	void (*tell)(struct sim_client *c, char *text, size_t room);
	void (*check)(struct sim_client *c); /* at rest, in depth */
	void (*describe)(struct sim_client *c, char *buf, size_t len);
	/* Reads that found damage and wrote over it; NULL: it does not. */
	uint64_t (*repairs)(struct sim_client *c);
	/* Planted faults of the layout, by number from 1; NULL: no more. One is
	 * in force at a time, 0: none. */
	const char *(*fault)(unsigned i);
	void (*plant)(unsigned i);
};
extern const struct sim_client_ops sim_inplace_ops;
extern const struct sim_client_ops sim_log_ops;

/* ---- the world ----------------------------------------------------------- */

/* Chances are of 65536 and for each turn of the reactor. */
struct sim_profile {
	const char *name;
	const char *about;
	unsigned turns;       /* of load and faults */
	unsigned depth;       /* user I/Os at once, most */
	unsigned write_share; /* of 100 */
	uint32_t io_max;      /* bytes of one */
	uint64_t vdisk_bytes; /* about */
	uint64_t chunk_bytes; /* in a row; 0: as the dice fall */
	uint64_t latency_ns;
	unsigned crash, away, back, slow, once, bad, rot, heal, shut, admin;
	unsigned swizzle; /* of 65536 crashes: other drives are away after */
	const char *only; /* for the layout of this name; NULL: for all */
	bool cramped;     /* the least room, in the smallest parts */
};
extern const struct sim_profile sim_profiles[];
const struct sim_profile *sim_profile_find(const char *name); /* or NULL */

struct sim_stats {
	uint64_t seeds, turns, crashes, power_cuts, opens, open_crashes, closes;
	uint64_t close_crashes, create_crashes, refused, swizzles;
	uint64_t leaves, returns, slows, bad, rot, shorn, ghosts;
	uint64_t once[SIM_ONCES];
	uint64_t reads, writes, flushes, trims, failed, full;
	uint64_t rebuilds, moves, changes, beyond;
};

enum sim_phase { SIM_NEW, SIM_DOWN, SIM_OPENING, SIM_RUNNING, SIM_CLOSING };

struct sim {
	uint64_t seed;
	const struct sim_profile *profile;
	struct reactor *r;
	struct rng rng;
	struct sim_client *client;
	struct oracle *oracle;
	struct sim_drive drive[SIM_DRIVES_MAX];
	enum sim_phase phase;
	struct bdev *vdisk;
	bool quiesce; /* before a crash: let all writes become durable */
	bool flushing;
	unsigned handles; /* open or closing */
	bool calm;        /* the end: no more faults, no more load */
	bool beyond;      /* more drives may go than it can do without */
	bool forgive;     /* and did: I/O may fail */
	unsigned fuse;    /* turns to a crash decided on */
	bool verbose;
	struct sim_stats stats;
};

/* From the client: the vDisk is there, or could not be had (a violation). */
void sim_up(struct sim *sim, struct bdev *vdisk, const struct err *err);
void sim_down(struct sim *sim);

/* Drives that are not to be counted on just now. */
uint32_t sim_budget_used(struct sim *sim);
/* More than can be done without. */
bool sim_budget_overdrawn(struct sim *sim);
/* The dice of one turn. hot: labels are being written. */
void sim_faults(struct sim *sim, bool hot);
/* The owner is gone: who is away is dealt anew. */
void sim_swizzle(struct sim *sim);
/* The client does not open: its drives are too few just then. */
void sim_refused(struct sim *sim);
/* It has stopped for want of drives (beyond): closes it, if it can be now. */
void sim_stopped(struct sim *sim);

/* One seed, from nothing to a verified end. Violations do not return. */
void sim_run(const struct sim_client_ops *ops,
	     const struct sim_profile *profile, uint64_t seed, bool verbose,
	     struct sim_stats *stats);
/* One turn of the reactor; false: nothing is due any more. */
void sim_turn(struct sim *sim);

static inline uint64_t sim_below(struct sim *sim, uint64_t n)
{
	return rng_below(&sim->rng, n);
}

static inline bool sim_chance(struct sim *sim, unsigned of_65536)
{
	return of_65536 && rng_below(&sim->rng, 65536) < of_65536;
}

/* The history, when it is wanted. */
void sim_note(struct sim *sim, const char *fmt, ...) ID_PRINTF(2, 3);
/* A promise is broken: prints it and how to see it again, ends the process. */
_Noreturn void sim_violation(struct sim *sim, const char *fmt, ...)
	ID_PRINTF(2, 3);

#endif
