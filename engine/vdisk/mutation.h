/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Planted faults: each takes one rule of the vDisk away, to see that the
 * simulator (tests/sim) notices. A test of the test. Only the simulator is
 * compiled with IODECK_MUTATIONS; elsewhere MUTATION() is 0.
 */
#ifndef ENGINE_VDISK_MUTATION_H
#define ENGINE_VDISK_MUTATION_H

/* X(name) for each, alphabetical: what is done wrong */
#define MUTATION_LIST(X)                                                     \
	X(ack_early)  /* a write that a failed member missed is acknowledged \
			 before the labels say so */                         \
	X(claim_none) /* the owner claims nothing before its first epoch */  \
	X(copy_alone) /* migrating: writes go to the old set alone */

enum mutation {
	MUTATION_NONE,
#define MUTATION_ENUM(name) MUTATION_##name,
	MUTATION_LIST(MUTATION_ENUM)
#undef MUTATION_ENUM
		MUTATIONS,
};

#ifdef IODECK_MUTATIONS
extern enum mutation mutation;
extern const char *const mutation_name[MUTATIONS];
#define MUTATION(name) (mutation == MUTATION_##name)
#else
#define MUTATION(name) 0
#endif

#endif
