#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kill -9 of the console during a run: the run goes on, and the next console
# goes on in the same session, with no gap and no double. kill -9 of the agent:
# the console says so and keeps the session, and `resume` takes the run up.
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null && command -v zstd >/dev/null || {
  echo "skipped: needs jq and zstd"
  exit 77
}
cluster
session=$HOME/s.jsonl.zst

# ---- what cannot be ----
want 2 iodeck run smoke vdisk=nope --headless
said err 'there is no vDisk nope'

# ---- the console ------------------------------------------------------------
iodeck run smoke vdisk=db1 seconds=1 --session "$session" --headless \
  >"$HOME/first.out" 2>&1 &
console=$!
until_true 30 has "$session" '.e == "phase" and .kind == "point"' ||
  die "no point began: $(cat "$HOME/first.out")"
kill -9 "$console"
wait "$console" 2>/dev/null
runs_before=$(events "$session" | jq -s 'map(select(.e == "run")) | length')
[ "$runs_before" = 1 ] || die "one run expected before, $runs_before found"
want 0 iodeck resume --headless
said out "session $session"
events "$session" >/dev/null || die "the session does not read back"
sequence_is_whole "$session" || die "a gap or a double after the console died"
[ "$(events "$session" | jq -s 'map(select(.e == "run")) | length')" = 1 ] ||
  die "the run was begun anew"
has "$session" '.e == "run_state" and .state == "done"' ||
  die "the run's end was not recorded"
want 0 iodeck show "$session" --json
jq -e '[.series[].points[]] | length >= 5' "$HOME/out" >/dev/null ||
  die "points are missing after the console died"

# ---- the agent --------------------------------------------------------------
session=$HOME/t.jsonl.zst
iodeck run smoke vdisk=db1 seconds=1 --session "$session" --headless \
  >"$HOME/second.out" 2>"$HOME/second.err" &
console=$!
until_true 30 has "$session" '.e == "phase" and .kind == "point"' ||
  die "no point began: $(cat "$HOME/second.err")"
kill -9 "$(agent_pid "$session")"
wait "$console"
[ $? -eq 1 ] || die "a lost agent ends with status 1"
grep -q "iodeck resume $session" "$HOME/second.err" ||
  die "how to go on is not said: $(cat "$HOME/second.err")"
want 0 iodeck show "$session"
said out ': unfinished: the record ends while it was running'
said out "iodeck resume $session"
want 0 iodeck show "$session" --json
jq -e '.unfinished and .written == false and .torn_bytes == 0' "$HOME/out" \
  >/dev/null || die "a cut session does not say so"
want 0 iodeck resume "$session" --headless
said out "session $session"
sequence_is_whole "$session" || die "a gap or a double after the agent died"
has "$session" '.e == "run" and .resumed_from > 0' ||
  die "the run was not taken up where it was"
want 0 iodeck show "$session" --json
jq -e '[.series[].points[]] | length >= 5' "$HOME/out" >/dev/null ||
  die "points are missing after the agent died"
jq -e '.unfinished == false' "$HOME/out" >/dev/null ||
  die "a session that was gone on with still says unfinished"
head -c -40 "$session" >"$HOME/torn.jsonl.zst"
want 0 iodeck show "$HOME/torn.jsonl.zst"
said out 'bytes of the file were torn'
[ "$(events "$session" | jq -s 'map(select(.e == "phase" and
  .kind == "max")) | length')" = 1 ] || die "the maximum was sought again"

# ---- a second console, and ^C ----------------------------------------------
session=$HOME/u.jsonl.zst
iodeck run smoke vdisk=db1 seconds=15 --session "$session" --headless \
  >"$HOME/third.out" 2>"$HOME/third.err" &
console=$!
until_true 30 has "$session" '.e == "phase" and .kind == "point"' ||
  die "no point began: $(cat "$HOME/third.err")"
want 0 iodeck vdisk list
said out '^db1 .* healthy'
want 0 iodeck show "$session"
said out 'is being written just now'
want 1 iodeck vdisk delete db1
said err 'another console owns the agent'
want 0 iodeck fault drive n2:d0 slow 1ms
has "$session" '.e == "fault" and .text == "drive n2:d0 slow 1ms"' ||
  until_true 5 has "$session" '.e == "fault" and .by == "operator"' ||
  die "a fault of a console that watches was not recorded"
has "$session" '.e == "cmd" and .text == "fault drive n2:d0 slow 1ms" and
  (.reply | test("watches"))' || die "who did it was not recorded"
want 0 iodeck resume --headless
said out 'this one watches on'
want 0 iodeck stop
wait "$console"
[ $? -eq 1 ] || die "a stopped run ends with status 1"
has "$session" '.e == "cmd" and .text == "stop" and
  (.reply | test("watches"))' || die "who stopped it was not recorded"
grep -q "session $session" "$HOME/third.out" ||
  die "what it measured is missing"
has "$session" '.e == "run_state" and .state == "stopped"' ||
  die "the stop was not recorded"
sequence_is_whole "$session" || die "a gap or a double behind a stop"

# ---- an owner that left, and what is refused -------------------------------
iodeck run smoke vdisk=db1 seconds=15 --session "$HOME/v.jsonl.zst" --headless \
  >"$HOME/v.out" 2>&1 &
console=$!
until_true 30 has "$HOME/v.jsonl.zst" '.e == "phase" and .kind == "point"' ||
  die "no point began: $(cat "$HOME/v.out")"
want 1 iodeck run smoke vdisk=db1 --session "$HOME/w.jsonl.zst" --headless
[ ! -e "$HOME/w.jsonl.zst" ] || die "a refused run left its session"
kill -9 "$console"
wait "$console"
want 0 iodeck stop
want 2 iodeck run smoke vdisk=nothing --session "$HOME/w.jsonl.zst" --headless
[ ! -e "$HOME/w.jsonl.zst" ] || die "a run of no vDisk left its session"

# ---- nothing to go on with -------------------------------------------------
want 1 iodeck resume "$HOME/nothing" --headless
[ ! -e "$HOME/nothing" ] || die "resume made a file"

# ---- the end is the end ----------------------------------------------------
lock=$HOME/.local/state/iodeck/agent/lab/lock
for n in 1 2 3; do
  want 0 iodeck vdisk list
  want 0 iodeck agent stop
  said out 'agent lab has ended'
  flock -n "$lock" true || die "the agent that was stopped still runs"
done
echo "both deaths survived"
