#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A run over nodes, each with an agent of its own on this machine and a vDisk:
# one series over all of them. One agent is killed and falls in again; the
# console is killed and another goes on; what all agents counted is what the
# session says.
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null && command -v zstd >/dev/null || {
  echo "skipped: needs jq and zstd"
  exit 77
}
mkdir -p "$HOME/.config/iodeck/suites"
{
  echo 'cluster = { name = "lab"; domains = ('
  for n in 1 2 3; do
    [ $n = 1 ] || echo ','
    mkdir "$HOME/d$n"
    echo "{ name = \"n$n\"; node = {}; drives = ( { name = \"d0\";"
    echo "  path = \"~/d$n\"; size = \"64M\"; shape = { iops = 300; }; } ); }"
  done
  echo ');'
  echo 'policies = ( { name = "one"; raid = 0; k = 1; layout = "inplace"; } );'
  echo '};'
} >"$HOME/.config/iodeck/iodeck.conf"
cat >"$HOME/.config/iodeck/suites/nodes.conf" <<'SUITE'
title = "nodes"; interval_ms = 200; warmup = 1;
series = ( { name = "all"; vdisks = "db*"; workload = "oltp4k"; } );
phases = ( { kind = "prefill"; },
  { kind = "ramp"; outstanding = [ 6, 6, 6, 6 ]; } );
SUITE
for n in 1 2 3; do
  want 0 iodeck vdisk create db$n size=4M policy=one owner=n$n
done
want 0 iodeck run nodes seconds=2 --plan
said out 'all on db1, db2 and db3: 6 outstanding'

# ---- what all do is the sum, with a node and the console killed -------------
session=$HOME/s.jsonl.zst
iodeck run nodes seconds=3 --session "$session" --headless \
  >"$HOME/first.out" 2>&1 &
console=$!
until_true 60 has "$session" '.e == "sample" and .phase == 3' ||
  die "no point began: $(cat "$HOME/first.out")"
kill -9 "$(events "$session" | jq -s \
  'map(select(.e == "host" and .a == "lab.n2")) | last | .agent.pid')"
until_true 20 has "$session" '.e == "run" and .a == "lab.n2" and .joined > 3' ||
  die "the killed node did not fall in: $(events "$session" | tail -3)"
kill -9 "$console"
wait "$console" 2>/dev/null
want 0 iodeck resume --headless
sequence_is_whole "$session" || die "a gap or a double"
want 0 iodeck show "$session" --json
jq -e '.state == "done" and .nodes == ["n1", "n2", "n3"]' "$HOME/out" \
  >/dev/null || die "the run is not done on three nodes"
jq -e '.series[0].points | length == 4 and .[3].silent == null and
  .[3].measured_s == 3 and (any(.[]; .silent != null))' "$HOME/out" \
  >/dev/null || die "$(jq -c '.series[0].points[] | [.phase, .silent,
  .measured_s, .missing]' "$HOME/out")"
# in phase 6 all took part: its figure is all that they counted
told=$(events "$session" | jq -s '[.[] | select(.e == "sample" and
  .phase == 6 and (.warm | not)) | .read.ops + .write.ops] | add')
jq -e --argjson told "$told" '.series[0].points[3] |
  (.iops * .measured_s - $told) | fabs < 0.5' "$HOME/out" >/dev/null ||
  die "totals differ: $told, $(jq .series[0].points[3].iops "$HOME/out")"
