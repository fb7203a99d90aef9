/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Planted faults: each switches one rule of the protocol off, so that tests
 * can show that they would notice. Only in builds of tests with
 * IODECK_MUTATIONS; elsewhere MUT() is false and costs nothing. The simulator
 * takes them by name (tests/sim, --mutation).
 *
 * ack_any        ack when one mirror of the record is done
 * apply_ooo      apply and ack in order of completion
 * no_cas         moves win over newer writes
 * free_early     victim freed before the move is durable
 * commit_early   COMMIT before the units are written
 * trim_early     log_zone is always the newest zone
 * sb_early       superblock before the snapshot is durable
 * log_m          log on m members
 * snap_m         snapshot on m members
 * quorum_1       claims and contents of one member count
 * no_claim       recovery claims no epoch
 * blind_claim    claim wipes the content accepted there
 * trust_failed   a failed superblock write is held to be absent
 * global_area    snapshot area by sequence, not by member
 * global_slot    superblock slot by sequence
 * recover_destage  recovery writes to slots that its log's tail freed
 * no_epoch_ckpt  serves on from the old epoch's log
 * no_magic       type and self address are not checked
 * no_crc         block checksums are not checked
 * seal_early     SEAL while stripes are outstanding
 * zone_late      a zone is registered once it is open
 * slot_early     slots given back with readers on them
 * no_flush       snapshot is not flushed
 * no_fua         log records are written without FUA
 * no_lba_seed    the crc does not know its LBA
 * snap_no_cow    snapshot mixes states
 * stale_repair   repairs write what was read, not decoded
 * read_replaced  a new member has what the old had
 * blank_votes    a new member votes before it is accepted
 * old_votes      a member that was replaced still counts
 * punch_early     a slot is trimmed though it was taken again
 * no_zone_epoch  zones of earlier epochs count
 * seg_id_again   segment ids come again after a crash
 * scan_window    one bad sector hides the records around
 * too_few        opens though too many failed while opening
 * lost_early     what is away is moved as lost
 * repair_race    repairs of one place at the same time
 */
#ifndef ENGINE_VDISK_LOG_MUT_H
#define ENGINE_VDISK_LOG_MUT_H

#define VLOG_MUT_LIST(X)                    \
	X(ACK_ANY, ack_any)                 \
	X(APPLY_OOO, apply_ooo)             \
	X(NO_CAS, no_cas)                   \
	X(FREE_EARLY, free_early)           \
	X(COMMIT_EARLY, commit_early)       \
	X(TRIM_EARLY, trim_early)           \
	X(SB_EARLY, sb_early)               \
	X(LOG_M, log_m)                     \
	X(SNAP_M, snap_m)                   \
	X(QUORUM_1, quorum_1)               \
	X(NO_CLAIM, no_claim)               \
	X(BLIND_CLAIM, blind_claim)         \
	X(TRUST_FAILED, trust_failed)       \
	X(GLOBAL_AREA, global_area)         \
	X(GLOBAL_SLOT, global_slot)         \
	X(NO_EPOCH_CKPT, no_epoch_ckpt)     \
	X(RECOVER_DESTAGE, recover_destage) \
	X(NO_MAGIC, no_magic)               \
	X(NO_CRC, no_crc)                   \
	X(SEAL_EARLY, seal_early)           \
	X(ZONE_LATE, zone_late)             \
	X(SLOT_EARLY, slot_early)           \
	X(NO_FLUSH, no_flush)               \
	X(NO_FUA, no_fua)                   \
	X(NO_LBA_SEED, no_lba_seed)         \
	X(SNAP_NO_COW, snap_no_cow)         \
	X(STALE_REPAIR, stale_repair)       \
	X(READ_REPLACED, read_replaced)     \
	X(BLANK_VOTES, blank_votes)         \
	X(OLD_VOTES, old_votes)             \
	X(PUNCH_EARLY, punch_early)         \
	X(NO_ZONE_EPOCH, no_zone_epoch)     \
	X(SEG_ID_AGAIN, seg_id_again)       \
	X(SCAN_WINDOW, scan_window)         \
	X(TOO_FEW, too_few)                 \
	X(LOST_EARLY, lost_early)           \
	X(REPAIR_RACE, repair_race)

enum vlog_mut {
	MUT_NONE,
#define VLOG_MUT_ENUM(name, text) MUT_##name,
	VLOG_MUT_LIST(VLOG_MUT_ENUM)
#undef VLOG_MUT_ENUM
		MUT_COUNT,
};

#ifdef IODECK_MUTATIONS
extern enum vlog_mut vlog_mut;
extern const char *const vlog_mut_name[MUT_COUNT];
#define MUT(name) (vlog_mut == MUT_##name)
#else
#define MUT(name) false
#endif

#endif
