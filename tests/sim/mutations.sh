#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Each planted fault (engine/vdisk/mutation.h, engine/vdisk/log/mut.h) is caught
# by the simulator within the seeds stated here; none is missing from the list.
# Usage: mutations.sh [frequent | rare | NAME...]; without, all. What is not
# frequent takes minutes, label_unflushed much longer: test_found.c has it
# directly.
set -u
sim=${BIN_DIR:?}/sim
status=0

# layout, fault, profile ("-": each in turn), last of the seeds 1-, how often.
# The profile of those that are frequent is the one that is soonest through.
faults="
inplace ack_early              -         300    rare
inplace claim_minority         -         20     frequent
inplace claim_none             -         20     frequent
inplace clean_unflushed        -         600    rare
inplace copy_alone             -         20     frequent
inplace failure_untold         -         300    rare
inplace flush_failed_trusted   -         60     frequent
inplace flush_one              -         20     frequent
inplace label_in_place         -         60     frequent
inplace label_minority         -         20     frequent
inplace label_unflushed        -         20000  rare
inplace lock_none              -         20     frequent
inplace mark_early             -         2000   rare
inplace mark_ignored           -         20     frequent
inplace moved_unflushed        -         60     frequent
inplace parity_unread          -         20     frequent
inplace read_any_copy          -         60     frequent
inplace read_failed_member     -         600    rare
inplace rebuild_unread         -         300    frequent
inplace resync_none            -         20     frequent
inplace resync_volatile        -         600    rare
inplace stale_served           -         60     frequent
inplace whole_early            -         100    frequent
inplace window_open            -         20     frequent
inplace write_failed_trusted   -         300    rare
log     ack_any                calm        20     frequent
log     apply_ooo              calm        20     frequent
log     blind_claim            calm        20     frequent
log     commit_early           calm        20     frequent
log     free_early             calm        20     frequent
log     global_area            calm        20     frequent
log     global_slot            calm        20     frequent
log     no_cas                 calm        20     frequent
log     no_epoch_ckpt          calm        20     frequent
log     no_flush               calm        20     frequent
log     no_fua                 calm        20     frequent
log     sb_early               calm        20     frequent
log     seal_early             calm        20     frequent
log     snap_m                 calm        20     frequent
log     trim_early             calm        20     frequent
log     zone_late              calm        60     frequent
log     ghost                  flapping    20     frequent
log     log_m                  rotten      20     frequent
log     no_crc                 rotten      20     frequent
log     scan_window            swizzled    20     frequent
log     snap_no_cow            wide        40     frequent
log     trust_failed           flapping    20     frequent
log     lost_early             flapping    400    rare
log     no_claim               swizzled    2000   rare
log     no_zone_epoch          -           300    rare
log     old_votes              crashy      60     rare
log     quorum_1               tiny        100    rare
log     read_replaced          flapping    60     rare
log     recover_destage        cramped     500    rare
log     seg_id_again           crashy      150    rare
log     slot_early             -           600    rare
log     too_few                -           1000   rare
"

# Not by seeds, but by a test that fails with it: README.md.
directed=" blank_votes no_lba_seed no_magic punch_early repair_race \
stale_repair "

# caught LAYOUT FAULT PROFILE LAST
caught() {
  last=$4
  set -- --layout "$1" --mutation "$2" --profile "$3"
  [ "$6" != - ] || set -- "$1" "$2" "$3" "$4"
  "$sim" "$@" --seeds "1-$last" --expect-violation 2>&1 | grep '^caught'
}

for name in $("$sim" --list | sed -n 's/^mutation *\([a-z]*\) */\1:/p'); do
  printf '%s' "$faults" | grep -q "^${name%%:*} *${name#*:} " || {
    case $directed in
    *" ${name#*:} "*) continue ;;
    esac
    echo "$name: not in the list of this script"
    status=1
  }
done

printf '%s' "$faults" | {
  while read -r layout name profile last often; do
    [ -n "$name" ] || continue
    case " ${*:-$name} " in
    *" $name "* | *" $often "*) ;;
    *) continue ;;
    esac
    printf '%-8s%-22s' "$layout" "$name"
    caught "$layout" "$name" "$profile" "$last" || {
      echo "NOT CAUGHT within $last seeds"
      status=1
    }
  done
  exit "$status"
} || status=1
exit "$status"
