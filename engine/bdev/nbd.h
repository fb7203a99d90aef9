/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A block device at the other end of NBD, by libnbd, on the reactor's foreign
 * descriptors: no thread of its own, and nothing that waits. It is there at
 * once, of the size that the caller states; where it is to be found may be
 * told later, and again when the export has moved or has another key.
 *
 *	          target            negotiated, and as stated
 *	WAITING ---------> CONNECTING ---------> UP
 *	   |                  |  ^ again          | no answer, cut off,
 *	   |                  v  | after a while  v another target
 *	   |   wait_ns        LOST <--------------'
 *	   '------------------> DEAD <- lost_ns, not as stated, told so
 *
 * What is submitted while it is not UP waits. DEAD is for good: what waits, and
 * whatever comes, fails with -ENODEV.
 *
 * What is asked of the exporter
 *   1. One client at a time, and the next only once all commands of the last
 *      one have ended (nbdkit's limit filter, put first, is that: it counts
 *      until a connection is closed, which is after its commands).
 *   2. An exporter that takes another's place begins after the process before
 *      it was reaped.
 *   3. A target (its key, its path) is good for one boot of its machine, or
 *      says by `boot` which one.
 *
 * By 1 and 2 a connection that came to be is the proof that nothing sent over
 * an earlier one can still land. That makes it safe to send again, on the new
 * one, what was not answered on the old: it cannot overtake itself. Nor can it
 * change what anybody may read: overlapping writes in flight are the caller's
 * to order, so whatever had been begun after an unanswered write was answered
 * did not overlap it, and it lands once more with the same content. A FLUSH is
 * sent again like the rest: by 3 what was answered before is still in that
 * machine's memory. Where that is not so (another `boot`), and there are
 * answered writes that no FLUSH has covered, it is DEAD: they may be lost.
 *
 * Close completes when no write of ours can still land, where that can be
 * known: all were answered, or a later connection came to be. Where it cannot
 * be (the link is down), close completes all the same, and its last state is
 * UNFENCED in the place of CLOSED: whoever gives the component to somebody
 * else, or opens it where it lies, ends the export first and hears that its
 * process was reaped. Opening it again by NBD needs no more than 1 and 2.
 *
 * Not on the simulated reactor.
 */
#ifndef ENGINE_BDEV_NBD_H
#define ENGINE_BDEV_NBD_H

#include "engine/bdev/bdev.h"

enum bdev_nbd_state {
	BDEV_NBD_WAITING,
	BDEV_NBD_CONNECTING,
	BDEV_NBD_UP,
	BDEV_NBD_LOST,
	BDEV_NBD_DEAD,
	/* the last of all, one of these: */
	BDEV_NBD_CLOSED,
	BDEV_NBD_UNFENCED,
};

struct bdev_nbd_opts {
	const char *name; /* for messages: "n2:d1" */
	uint64_t size_bytes;
	uint32_t block_bytes;  /* 0: 512. The server may have a smaller one */
	bool trim_zeroes;      /* TRIM makes zeros (it is a file over there), or
				  is a hint (a device) */
	unsigned inflight_max; /* commands at once; 0: 64 */
	uint64_t wait_ns;      /* most until it is first UP, 0: 30 s */
	uint64_t lost_ns;      /* most to be without one that answers, 0: 4 s */
	uint64_t answer_ns; /* most a command, or a handshake, may take, 0: 5 s
			       (of reactor_lived()) */
	/*
	 * Runs when the state changes, on the reactor, never inside a call of
	 * these; why: a sentence, "" when all is well. The bdev is gone after
	 * CLOSED or UNFENCED. May be NULL. It may call what is below, not turn
	 * the reactor.
	 */
	void (*state)(enum bdev_nbd_state state, const char *why, void *arg);
	void *arg;
};

/*
 * At once, WAITING. -ENOTSUP: built without libnbd, or on the simulated
 * reactor; -EINVAL, -ENOMEM.
 */
int bdev_nbd_open(struct reactor *r, const struct bdev_nbd_opts *opts,
		  struct bdev **bdev, struct err *err);

struct bdev_nbd_target {
	const char *unix_path; /* or address and port: */
	const char *address;   /* IPv4 or IPv6, in digits: names would have to
				  be resolved, and that blocks */
	uint16_t port;
	const char *export_name; /* NULL: "" */
	/* TLS by pre-shared key, of hexadecimal digits; NULL: no TLS. It is
	 * kept in memory only; no message has it. */
	const char *key;
	const char *identity; /* NULL: "iodeck" */
	const char
		*priority; /* GnuTLS's; NULL: AES-GCM, as the default
			      is many times slower. Heeded where libnbd can be
			      told (1.24); else the exporter's choice decides */
	const char *boot;  /* of the far machine: its boot_id; NULL: as long
			      as the target is the same */
};

/*
 * Where to find it. Copied. Another one than before ends the connection there
 * is; the same again does nothing while it is UP. -EINVAL with a sentence;
 * -ENODEV: it is DEAD. bdev: what bdev_nbd_open() gave, before its last state.
 */
int bdev_nbd_target(struct bdev *bdev, const struct bdev_nbd_target *target,
		    struct err *err);

/* DEAD, because of `why`: the exporter's agent says that it is gone. */
void bdev_nbd_give_up(struct bdev *bdev, const char *why);

enum bdev_nbd_state bdev_nbd_state(const struct bdev *bdev);
/* "connecting", "up", ... */
const char *bdev_nbd_state_name(enum bdev_nbd_state state);

#endif
