#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kill -9 of the agent while it runs load on log-structured vDisks over files:
# each time the next agent opens them, all of each must read as the journal
# says that it was written.
#
#   agent.sh [KILLS [SEED [volatile]]]   24 kills from seed 1; volatile:
#                                        unsynced writes are lost with it
kills=${1:-24}
seed=${2:-1}
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null && command -v zstd >/dev/null || {
  echo "skipped: needs jq and zstd"
  exit 77
}
conf=$HOME/.config/iodeck
export IODECK_JOURNAL="$HOME/journal"
[ -z "${3:-}" ] || export IODECK_VOLATILE="$seed"
mkdir -p "$IODECK_JOURNAL" "$conf/workloads" "$conf/suites"

# A number below $1; dash has no RANDOM, and a seed makes it the same again.
draw() {
  seed=$(((seed * 1103515245 + 12345) % 2147483648))
  drawn=$((seed / 65536 % $1))
}

{
  echo 'cluster = { name = "lab"; domains = ('
  for n in 1 2 3 4 5 6; do
    [ $n = 1 ] || echo ','
    mkdir "$HOME/d$n"
    echo "{ name = \"n$n\"; drives = ( { name = \"d0\";"
    echo "  path = \"~/d$n\"; size = \"2G\"; } ); }"
  done
  echo '); vdisks = ('
  echo '{ name = "db1"; size = "40M"; raid = 1; layout = "log";'
  echo '  compression = "lz4"; },'
  echo '{ name = "db2"; size = "40M"; raid = 5; layout = "log";'
  echo '  compression = "zstd"; },'
  echo '{ name = "db3"; size = "40M"; raid = 6; layout = "log"; } ); };'
} >"$conf/iodeck.conf"
cat >"$conf/workloads/hammer.conf" <<'END'
workloads = (
  { name = "hammer"; read_share = 0.25; random_share = 0.9;
    sizes = ( ("4K", 0.6), ("16K", 0.25), ("64K", 0.1), ("512K", 0.05) );
    compress_ratio = 2.0; }
);
END
suite() { # suite NAME OUTSTANDING [MORE]
  {
    echo "title = \"$1\"; interval_ms = 200; seed = $seed;"
    echo 'series = ( { name = "H"; workload = "hammer"; } );'
    echo 'phases = ( { kind = "ramp"; warmup = 0; seconds = 60;'
    echo "  outstanding = $2; ${3:-} } );"
  } >"$conf/suites/$1.conf"
}
suite one 1
suite many 32
suite pulled 16 'during = (
  { at_share = 0.005; kind = "fault"; text = "drive n2:d0 offline"; },
  { at_share = 0.012; kind = "fault"; text = "drive n2:d0 online"; } );'

# field VDISK NUMBER: of the journal's head, in words of 8 bytes.
field() {
  od -A n -t u8 -j $(($2 * 8)) -N 8 "$IODECK_JOURNAL/$1.journal" 2>/dev/null |
    tr -d ' ' | grep . || echo 0
}
sweeps() { field "$1" 4; }
writes() { field "$1" 5; }
wrong() { field "$1" 11; }
first() {
  od -A n -c -j 96 -N 250 "$IODECK_JOURNAL/$1.journal" | tr -d ' \n' |
    sed 's/\\0.*//'
}

nothing_wrong() {
  for v in db1 db2 db3; do
    [ "$(wrong $v)" -eq 0 ] ||
      die "$v after $done kills: $(wrong $v) wrong: $(first $v)"
  done
}

swept() { # more sweeps than before of all
  [ "$(sweeps db1)" -gt "$s1" ] && [ "$(sweeps db2)" -gt "$s2" ] &&
    [ "$(sweeps db3)" -gt "$s3" ]
}

worked() { [ "$(writes "$target")" -ge "$goal" ]; }

# What the agent had to say for itself.
lost() {
  cat "$HOME/out" "$HOME/err"
  events "$session" | jq -c 'select(.e == "log" or .e == "run_state" or
    .e == "vdisk") | [.e, .name, .state, .reason, .text, .level]'
  iodeck vdisk list
  die "$1"
}

life() {
  draw 3
  target=db$((drawn + 1))
  draw 3
  suite=$(echo one many pulled | cut -d ' ' -f $((drawn + 1)))
  s1=$(sweeps db1) s2=$(sweeps db2) s3=$(sweeps db3)
  session=$HOME/s.jsonl.zst
  rm -f "$session"
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
    nothing_wrong
    draw 400
    goal=$(($(writes $target) + drawn))
    until_true 5 worked
    whole=$((whole + 1))
  fi
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

done=0 early=0 whole=0
while [ "$done" -lt "$kills" ]; do
  life
  done=$((done + 1))
done
s1=$(sweeps db1) s2=$(sweeps db2) s3=$(sweeps db3)
want 0 iodeck vdisk list
until_true 60 swept || die "not all was read at last"
nothing_wrong
for v in db1 db2 db3; do
  echo "$v: $(field $v 5) writes, $(field $v 6) reads, $(sweeps $v) sweeps;" \
    "cut off $(field $v 8) blocks, $(field $v 9) of them as after"
done
echo "$kills kills, $early of them early: nothing lost, nothing wrong"
