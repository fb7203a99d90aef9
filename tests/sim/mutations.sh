#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Each planted fault (engine/vdisk/mutation.h) is caught by the simulator
# within the seeds stated here; none is missing from the list.
# Usage: mutations.sh [frequent | NAME...]; without, all. What is not frequent
# takes minutes, label_unflushed much longer: test_found.c has it directly.
set -u
sim=${BIN_DIR:?}/sim
status=0

# fault, last of the seeds 1-, how often
faults="
ack_early             300    rare
claim_minority        20     frequent
claim_none            20     frequent
clean_unflushed       600    rare
copy_alone            20     frequent
failure_untold        300    rare
flush_failed_trusted  60     frequent
flush_one             20     frequent
label_in_place        60     frequent
label_minority        20     frequent
label_unflushed       20000  rare
lock_none             20     frequent
mark_early            2000   rare
mark_ignored          20     frequent
moved_unflushed       60     frequent
parity_unread         20     frequent
read_any_copy         60     frequent
read_failed_member    600    rare
rebuild_unread        300    frequent
resync_none           20     frequent
resync_volatile       600    rare
stale_served          60     frequent
whole_early           100    frequent
window_open           20     frequent
write_failed_trusted  300    rare
"

caught() {
  "$sim" --mutation "$1" --seeds "1-$2" --expect-violation 2>&1 |
    grep '^caught'
}

for name in $("$sim" --list | sed -n 's/^mutation *//p'); do
  case $faults in
  *"
$name "*) ;;
  *)
    echo "$name: not in the list of this script"
    status=1
    ;;
  esac
done

printf '%s' "$faults" | {
  while read -r name last often; do
    [ -n "$name" ] || continue
    case " ${*:-$name} " in
    *" $name "* | *" $often "*) ;;
    *) continue ;;
    esac
    printf '%-22s' "$name"
    caught "$name" "$last" || {
      echo "NOT CAUGHT within $last seeds"
      status=1
    }
  done
  exit "$status"
} || status=1
exit "$status"
