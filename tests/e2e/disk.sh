#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A full disk under the session during a run: the console says so, nothing is
# lost, and once there is room what was measured is all there. The disk is a
# tmpfs of its own, so this needs mount or user namespaces.
if [ -z "${IODECK_IN_NAMESPACE:-}" ]; then
  for way in "unshare -m" "unshare -rm"; do
    $way true 2>/dev/null || continue
    # shellcheck disable=SC2093 # it does not return
    IODECK_IN_NAMESPACE=1 exec $way sh "$0"
  done
  echo "skipped: no mount namespace can be had"
  exit 77
fi
. "$SOURCE_DIR/tests/e2e/lab.sh"
mkdir "$HOME/small"
mount -t tmpfs -o size=256k none "$HOME/small" 2>/dev/null || {
  echo "skipped: tmpfs cannot be mounted"
  exit 77
}
cluster
session=$HOME/small/s.jsonl.zst
iodeck run smoke vdisk=db1 seconds=2 --session "$session" --headless \
  >"$HOME/run.out" 2>"$HOME/run.err" &
console=$!
until_true 30 has "$session" '.e == "phase"' || die "no phase began"
dd if=/dev/zero of="$HOME/small/fill" bs=1k 2>/dev/null
sleep 4
full=$(wc -c <"$session")
rm "$HOME/small/fill"
wait "$console" || die "the run: $(cat "$HOME/run.err")"
[ "$(wc -c <"$session")" -gt "$full" ] || die "nothing was written after"
sequence_is_whole "$session" || die "a gap or a double after the full disk"
want 0 iodeck show "$session" --json
jq -e '[.series[].points[]] | length == 5' "$HOME/out" >/dev/null ||
  die "points are missing"
echo "a full disk cost nothing"
