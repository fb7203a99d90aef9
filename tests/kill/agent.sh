#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kill -9 of the agent while it runs load on log-structured vDisks over files:
# each time the next agent opens them, all of each must read as the journal
# says that it was written. Between kills policies and codecs change, and are
# cut short like the load, and a drive is replaced by an empty one.
#
#   agent.sh [KILLS [SEED [volatile]]]   24 kills from seed 1; volatile:
#                                        unsynced writes are lost with it
kills=${1:-24}
seed=${2:-1}
[ -z "${3:-}" ] || export IODECK_VOLATILE="$seed"
. "$SOURCE_DIR/tests/kill/journal.sh"
worked() { [ "$(writes "$target")" -ge "$goal" ]; }

# What the agent had to say for itself.
lost() {
  cat "$HOME/out" "$HOME/err"
  events "$session" | jq -c 'select(.e == "log" or .e == "run_state" or
    .e == "vdisk") | [.e, .name, .state, .reason, .text, .level]'
  iodeck vdisk list
  die "$1"
}

# Another policy or codec, while nothing runs: in the middle of it comes the
# end, or a little after it.
change() {
  want 0 iodeck vdisk list
  until_true 60 swept || lost "not all was read after $done kills"
  nothing_wrong "after $done kills"
  draw 6
  what=$(echo raid=1 raid=5 raid=6 compression=none compression=lz4 \
    compression=zstd | cut -d ' ' -f $((drawn + 1)))
  # one that is not healthy yet, or so already, says so
  if iodeck vdisk set "$target" "$what" >"$HOME/out" 2>"$HOME/err"; then
    changed=$((changed + 1))
  fi
  draw 60
  sleep "0.$((drawn + 10))"
}

# settle JQ-CONDITION of all: no run begins while a vDisk moves, and none pulls
# a drive while another is still being replaced.
settle() {
  for v in db1 db2 db3; do
    until_true 90 vdisk_is $v "$1" || lost "$v: not $1 after $done kills"
  done
  moving=
}

# A drive is replaced while no agent runs, once all vDisks can do without.
replace() {
  settle '.state == "healthy"'
  want 0 iodeck agent stop
  draw 6
  drive_replace $((drawn + 1))
  replaced=$((replaced + 1))
}

life() {
  draw 3
  target=db$((drawn + 1))
  draw 8
  if [ "$drawn" -eq 0 ]; then
    replace
  elif [ "$drawn" -le 2 ]; then
    sweeps_keep
    change
    kill -9 "$(agent_is_up)"
    until_true 20 agent_is_gone || die "the agent outlives its kill"
    moving=1
    return
  fi
  draw 3
  suite=$(echo one many pulled | cut -d ' ' -f $((drawn + 1)))
  sweeps_keep
  session=$HOME/s.jsonl.zst
  rm -f "$session"
  [ -z "$moving" ] || settle '.state != "migrating"'
  [ "$suite" != pulled ] || settle '.state == "healthy"'
  iodeck run "$suite" "vdisk=$target" --session "$session" --headless \
    >"$HOME/out" 2>"$HOME/err" &
  console=$!
  draw 8
  if [ "$drawn" -eq 0 ]; then # as it opens, or reads
    until_true 20 agent_is_up || die "no agent: $(cat "$HOME/err")"
    draw 40
    sleep "0.$drawn"
    early=$((early + 1))
  else
    until_true 60 swept || lost "not all was read after $done kills"
    nothing_wrong "after $done kills"
    draw 400
    goal=$(($(writes $target) + drawn))
    until_true 5 worked
    whole=$((whole + 1))
  fi
  # a run may have ended by itself, as where drives away take too much room
  agent_is_up >/dev/null || iodeck vdisk list >/dev/null
  until_true 20 agent_is_up || lost "no agent to kill"
  kill -9 "$(agent_is_up)"
  wait "$console"
}

# Prints its pid: who holds the lock of its directory.
agent_is_up() {
  lock=$(stat -c %i "$HOME/.local/state/iodeck/agent/lab/lock" 2>/dev/null) &&
    awk -v inode="$lock" '$6 ~ ":" inode "$" { print $5; found = 1; exit }
      END { exit !found }' /proc/locks
}

agent_is_gone() { ! agent_is_up >/dev/null; }

done=0 early=0 whole=0 changed=0 replaced=0 moving=
while [ "$done" -lt "$kills" ]; do
  life
  done=$((done + 1))
done
sweeps_keep
want 0 iodeck vdisk list
until_true 60 swept || die "not all was read at last"
nothing_wrong "at last"
for v in db1 db2 db3; do
  echo "$v: $(field $v 5) writes, $(field $v 6) reads, $(sweeps $v) sweeps;" \
    "cut off $(field $v 8) blocks, $(field $v 9) of them as after"
done
echo "$kills kills, $early of them early, $changed changes of policy or" \
  "codec, $replaced drives replaced: nothing lost, nothing wrong"
