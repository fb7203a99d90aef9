#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# vDisks over the drives of four nodes, each an agent of its own on this
# machine. A node dies while one is written over NBD and another is under a run;
# it comes back, is resynced, the vDisk moves to other nodes, and each byte that
# was written is there.
. "$SOURCE_DIR/tests/e2e/lab.sh"
for tool in jq zstd nbdkit nbdcopy; do
  command -v $tool >/dev/null || {
    echo "skipped: needs $tool"
    exit 77
  }
done
mkdir -p "$HOME/.config/iodeck/suites"
{
  echo 'cluster = { name = "lab"; node = { nbd_ports = "21000-21199"; };'
  echo '  domains = ('
  for n in 1 2 3 4; do
    [ $n = 1 ] || echo ','
    mkdir "$HOME/d$n"
    echo "{ name = \"n$n\"; node = {}; drives = ( { name = \"d0\";"
    echo "  path = \"~/d$n\"; size = \"256M\"; } ); }"
  done
  echo ');'
  echo 'policies = ( { name = "mirror"; raid = 1; } ); };'
} >"$HOME/.config/iodeck/iodeck.conf"
cat >"$HOME/.config/iodeck/suites/short.conf" <<'SUITE'
title = "short"; interval_ms = 200; warmup = 0.2;
series = ( { name = "all"; vdisk = "db2"; workload = "oltp4k"; } );
phases = ( { kind = "ramp"; outstanding = [ 2, 4 ]; } );
SUITE

state() {
  iodeck --json vdisk show "$1" 2>/dev/null | jq -r .state
}

is_healthy() {
  [ "$(state "$1")" = healthy ]
}

# Where db1 can be had now.
socket() {
  want 0 iodeck --json vdisk export db1
  jq -er .export.uri "$HOME/out"
}

# Whatever happens, nothing stays stopped.
stopped=
go_on() {
  status=$?
  # shellcheck disable=SC2086 # a list of pids
  [ -z "$stopped" ] || kill -CONT $stopped 2>/dev/null
  (exit "$status")
  finish
}
trap go_on EXIT

# What is on db1 is what was written.
same() {
  nbdcopy "$1" "$HOME/back" || die "db1 cannot be read: $2"
  cmp "$HOME/data" "$HOME/back" || die "not what was written: $2"
}

want 0 iodeck vdisk create db1 size=16M policy=mirror owner=n1
want 0 iodeck vdisk create db2 size=16M raid=5 owner=n2
pgrep -f "nbdkit -f.*limit" >/dev/null || die "no component is lent by NBD"
head -c 16777216 /dev/urandom >"$HOME/data"
uri=$(socket)
nbdcopy "$HOME/data" "$uri" || die "db1 cannot be written at $uri"
same "$uri" "at first"

# ---- a node dies
session=$HOME/s.jsonl.zst
iodeck run short seconds=8 --session "$session" --headless \
  >"$HOME/run.out" 2>&1 &
console=$!
until_true 30 has "$session" '.e == "sample"' ||
  die "no point began: $(cat "$HOME/run.out")"
n3=$(events "$session" | jq -s \
  'map(select(.e == "host" and .a == "lab.n3")) | last | .agent.pid')
stopped="$n3 $(pgrep -P "$n3" | tr '\n' ' ')"
# shellcheck disable=SC2086 # a list of pids
kill -STOP $stopped
head -c 16777216 /dev/urandom >"$HOME/data"
nbdcopy "$HOME/data" "$uri" || die "db1 cannot be written without n3"
same "$uri" "without n3"
until_true 30 has "$session" '.e == "vdisk" and .state == "degraded"' ||
  die "nobody missed n3"
# shellcheck disable=SC2086
kill -CONT $stopped
wait "$console" || die "the run went wrong: $(cat "$HOME/run.out")"
sequence_is_whole "$session" || die "a gap or a double"

# ---- it is back, and its agent dies and is started anew
session=$HOME/t.jsonl.zst
iodeck run short seconds=8 --session "$session" --headless \
  >"$HOME/run.out" 2>&1 &
console=$!
until_true 30 has "$session" '.e == "sample"' || die "$(cat "$HOME/run.out")"
kill -9 "$n3"
nbdcopy "$HOME/data" "$uri" || die "db1 cannot be written without the agent"
wait "$console" || die "the run went wrong: $(cat "$HOME/run.out")"
until_true 30 is_healthy db1 || die "db1 stays $(state db1)"
until_true 30 is_healthy db2 || die "db2 stays $(state db2)"
same "$uri" "after the resync"
want 0 iodeck vdisk unexport db1
want 0 iodeck vdisk verify db1

# ---- it moves
for n in n3 n4 n1; do
  want 0 iodeck vdisk move db1 $n
  until_true 20 is_healthy db1 || die "on $n db1 is $(state db1)"
  uri=$(socket)
  same "$uri" "on $n"
  want 0 iodeck vdisk unexport db1
done
want 1 iodeck vdisk move db1 n1
said err 'has db1 already'

# ---- and the cluster is closed and opened again
want 0 iodeck agent stop
! pgrep -f "tls-psk.*$HOME" >/dev/null || die "an exporter is left"
uri=$(socket)
same "$uri" "after all have ended"
want 0 iodeck vdisk unexport db1
echo "vDisks over nodes: a node dies, comes back, they move, all is there"
