/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Layers over any bdev. A layer owns its child from a successful open on (its
 * close closes the child); on failure the child stays the caller's. Limits are
 * the child's, narrowed where the layer says so.
 *
 * slice  a range of the child
 * delay  a latency for each io, and stalls
 * error  failures by chance, by range or wholly (a pulled drive)
 * link   a modelled network link or drive interface: token bucket for bytes and
 *        for IOPS, plus latency; one link may be shared by several bdevs
 * remote the child lives on another reactor; io crosses by message rings
 * volatile  a write cache that is lost with the process
 */
#ifndef ENGINE_BDEV_LAYERS_H
#define ENGINE_BDEV_LAYERS_H

#include "engine/bdev/bdev.h"

/* ---- slice: off and len in bytes, multiples of the child's block -------- */
int bdev_slice_open(struct bdev *child, const char *name, uint64_t off_bytes,
		    uint64_t len_bytes, struct bdev **bdev, struct err *err);

/* ---- delay -------------------------------------------------------------- */
struct delay_opts {
	uint64_t read_ns, write_ns; /* mean time added to each io */
	double spread;              /* 0: constant; 1: exponential; between:
				       that share of the mean exponential */
};
int bdev_delay_open(struct bdev *child, const struct delay_opts *opts,
		    struct bdev **bdev, struct err *err);
void bdev_delay_set(struct bdev *bdev, const struct delay_opts *opts);
/* Holds everything back for `ns` from now on, then lets it go. */
void bdev_delay_stall(struct bdev *bdev, uint64_t ns);

/* ---- error -------------------------------------------------------------- */
struct error_opts {
	double read_rate, write_rate; /* share of io to fail, 0..1 */
	int code;                     /* negative errno; 0: -EIO */
	uint64_t bad_off, bad_len;    /* this range always fails reads */
	bool offline;                 /* everything fails with -ENODEV: a
					 pulled drive. So does what is in
					 flight, once the child has let go of
					 its buffer; writes may have landed */
};
int bdev_error_open(struct bdev *child, struct bdev **bdev, struct err *err);
void bdev_error_set(struct bdev *bdev, const struct error_opts *opts);

/* ---- link --------------------------------------------------------------- */
/*
 * Full duplex: each direction (to the drive: writes; from it: reads) is a
 * server that takes io in order; an io of len bytes occupies it for
 * max(len / rate, 1 / iops), then latency passes without occupying it. So the
 * rate is exact over any interval longer than one io, nothing is dropped, and
 * the queue is the io in flight. half_duplex makes one server of both (a
 * drive's own interface).
 */
struct link_opts {
	uint64_t rate_bytes_s; /* 0: no limit */
	uint64_t rate_iops;    /* 0: no limit */
	uint64_t latency_ns;   /* one way there and back, added once */
	bool half_duplex;
};
struct link_stats {
	uint64_t bytes[2], ops[2]; /* [0] from the drive, [1] to it */
	uint64_t busy_ns[2];
};
struct link;
int link_new(struct reactor *r, const char *name, const struct link_opts *opts,
	     struct link **link, struct err *err);
void link_set(struct link *link, const struct link_opts *opts);
void link_get(const struct link *link, struct link_opts *opts);
void link_stats(struct link *link, struct link_stats *stats);
/* Only after its bdevs are closed. Takes NULL. */
void link_free(struct link *link);
int bdev_link_open(struct bdev *child, struct link *link, struct bdev **bdev,
		   struct err *err);

/* ---- remote ------------------------------------------------------------- */
/*
 * A bdev of reactor `here` for a child of another, running reactor. Opened and
 * closed on `here`; the child is not owned: it is closed by its own side, after
 * the remotes on it are gone.
 */
int bdev_remote_open(struct reactor *here, struct bdev *child,
		     struct bdev **bdev, struct err *err);

/* ---- volatile ----------------------------------------------------------- */
/*
 * For tests: what was neither FUA nor flushed is lost with the process, each
 * sector (of the child's block) by itself, as chance of `seed` has it; some
 * went down early. A FUA write may go in several pieces, so that it can be
 * torn. -EINVAL where the child has no FLUSH or FUA.
 */
int bdev_volatile_open(struct bdev *child, uint64_t seed, struct bdev **bdev,
		       struct err *err);

#endif
