/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Planted faults: each switches one rule of the protocol off, so that tests
 * can show that they would notice. Only in builds of tests with
 * IODECK_MUTATIONS; elsewhere MUT() is false and costs nothing.
 */
#ifndef ENGINE_VDISK_LOG_MUT_H
#define ENGINE_VDISK_LOG_MUT_H

enum vlog_mut {
	MUT_NONE,
	MUT_ACK_ANY,       /* ack when one mirror of the record is done */
	MUT_APPLY_OOO,     /* apply and ack in order of completion */
	MUT_NO_CAS,        /* moves win over newer writes */
	MUT_FREE_EARLY,    /* victim freed before the move is durable */
	MUT_COMMIT_EARLY,  /* COMMIT before the units are written */
	MUT_TRIM_EARLY,    /* log_zone is always the newest zone */
	MUT_SB_EARLY,      /* superblock before the snapshot is durable */
	MUT_LOG_M,         /* log on m members */
	MUT_SNAP_M,        /* snapshot on m members */
	MUT_QUORUM_1,      /* claims and contents of one member count */
	MUT_NO_CLAIM,      /* recovery claims no epoch */
	MUT_BLIND_CLAIM,   /* claim wipes the content accepted there */
	MUT_TRUST_FAILED,  /* a failed superblock write is held to be absent */
	MUT_GLOBAL_AREA,   /* snapshot area by sequence, not by member */
	MUT_GLOBAL_SLOT,   /* superblock slot by sequence */
	MUT_NO_EPOCH_CKPT, /* serves on from the old epoch's log */
	MUT_NO_MAGIC,      /* type and self address are not checked */
	MUT_NO_CRC,        /* block checksums are not checked */
	MUT_SEAL_EARLY,    /* SEAL while stripes are outstanding */
	MUT_ZONE_LATE,     /* a zone is registered once it is open */
	MUT_SLOT_EARLY,    /* slots given back with readers on them */
	MUT_NO_FLUSH,      /* snapshot is not flushed */
	MUT_NO_FUA,        /* log records are written without FUA */
	MUT_NO_LBA_SEED,   /* the crc does not know its LBA */
	MUT_SNAP_NO_COW,   /* snapshot mixes states */
	MUT_STALE_REPAIR,  /* repairs write what was read, not decoded */
	MUT_READ_REPLACED, /* a new member is held to have what the old had */
	MUT_BLANK_VOTES,   /* a new member votes before it was accepted */
	MUT_OLD_VOTES,     /* a member that was replaced still counts */
	MUT_PUNCH_EARLY,   /* a slot is trimmed though it was taken again */
	MUT_COUNT,
};

#ifdef IODECK_MUTATIONS
extern enum vlog_mut vlog_mut;
#define MUT(name) (vlog_mut == MUT_##name)
#else
#define MUT(name) false
#endif

#endif
