/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Planted faults: each takes one rule of the vDisk away, to see that the
 * simulator (tests/sim) notices. A test of the test. Only the simulator is
 * compiled with IODECK_MUTATIONS; elsewhere MUTATION() is 0.
 *
 * ack_early            a write that a failed member missed is acknowledged
 *                      before the labels say so
 * claim_minority       a claim stands on one label fewer than it takes
 * claim_none           no claim before the first epoch
 * clean_unflushed      closed as clean, not flushed
 * copy_alone           migrating: writes go to the old set alone
 * failure_untold       a failed member is never written down
 * flush_failed_trusted a member whose flush failed stays
 * flush_one            FLUSH goes to one member
 * label_in_place       a label is written over the newest one
 * label_unflushed      a label found at opening is taken to be durable
 * label_minority       an epoch stands on one label fewer than it takes
 * lock_none            operations on the same bytes do not wait
 * mark_early           the mark of a rebuild is written before it is flushed
 * mark_ignored         a member being rebuilt is read as a whole one
 * moved_unflushed      the vDisk moves to a set that is not flushed
 * parity_unread        parity is made of what could not be read
 * read_any_copy        after a crash any copy is read
 * read_failed_member   what a failed member still sent is used
 * rebuild_unread       a member is rebuilt of what could not be read
 * resync_none          a crash leaves parity and copies as they are
 * resync_volatile      a resync ends without a flush
 * stale_served         a member left behind is read when it is back
 * whole_early          a member is told to be whole before the labels say so
 * window_open          writes go to where a migration is just copying
 * write_failed_trusted a member whose write failed stays
 */
#ifndef ENGINE_VDISK_MUTATION_H
#define ENGINE_VDISK_MUTATION_H

#ifdef IODECK_MUTATIONS

#define MUTATION_LIST(X)        \
	X(ack_early)            \
	X(claim_minority)       \
	X(claim_none)           \
	X(clean_unflushed)      \
	X(copy_alone)           \
	X(failure_untold)       \
	X(flush_failed_trusted) \
	X(flush_one)            \
	X(label_in_place)       \
	X(label_minority)       \
	X(label_unflushed)      \
	X(lock_none)            \
	X(mark_early)           \
	X(mark_ignored)         \
	X(moved_unflushed)      \
	X(parity_unread)        \
	X(read_any_copy)        \
	X(read_failed_member)   \
	X(rebuild_unread)       \
	X(resync_none)          \
	X(resync_volatile)      \
	X(stale_served)         \
	X(whole_early)          \
	X(window_open)          \
	X(write_failed_trusted)

enum mutation {
	MUTATION_NONE,
#define MUTATION_ENUM(name) MUTATION_##name,
	MUTATION_LIST(MUTATION_ENUM)
#undef MUTATION_ENUM
		MUTATIONS,
};

extern enum mutation mutation;
extern const char *const mutation_name[MUTATIONS];
#define MUTATION(name) (mutation == MUTATION_##name)

#else
#define MUTATION(name) false
#endif

#endif
