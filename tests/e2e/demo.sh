#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The demo without a console: both layouts' curves of ten points and their
# summary, two more policies, the slower link, the pulled drive; nothing is left
# but the session, also of a demo that was killed.
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null && command -v zstd >/dev/null || {
  echo "skipped: needs jq and zstd"
  exit 77
}

# One that is killed leaves its lab to the next, which removes it.
iodeck demo --headless --seconds 5 >/dev/null 2>&1 &
killed=$!
until_true 20 test -d "$HOME/.cache/iodeck/demo/$killed/agent" ||
  die "no lab was made"
sleep 1
kill -9 "$killed"
wait "$killed" 2>/dev/null
[ -d "$HOME/.cache/iodeck/demo/$killed" ] || die "the killed demo left no lab"

want 0 iodeck demo --headless --seconds 0.5 --json
jq -e . "$HOME/out" >/dev/null || die "not one JSON document"
jq -e '[.series[0:4][] | [.name, .layout]] == [["RAID-6, in place", "inplace"],
  ["RAID-6", "log"], ["RAID-5", "log"], ["RAID-1", "log"]]' "$HOME/out" \
  >/dev/null || die "two layouts, three policies expected"
jq -e '[.series[0:4][].points | length] == [10, 10, 5, 5]' "$HOME/out" \
  >/dev/null || die "ten points a curve, then five, expected"
jq -e '.series[1].write_amplification | .all > 1 and .log > 0' "$HOME/out" \
  >/dev/null || die "what the log layout wrote is not said"
jq -e '.series[0].write_amplification == null' "$HOME/out" >/dev/null ||
  die "in place, nothing is known of causes"
jq -e 'all(.series[0:4][].points[]; .asked_iops > 0 and .iops > 0 and .mb_s > 0
  and (.saturated | type) == "boolean"
  and all(.latency_us, .response_us; all(.all, .read, .write;
    .mean > 0 and .p50 > 0 and .p95 > 0 and .p99 > 0 and .p99_9 > 0)))' \
  "$HOME/out" >/dev/null || die "a point lacks figures"
jq -e 'all(.series[0:4][].summary; .peak_iops > 0 and .peak_latency_us > 0 and
  .at_70.iops > 0 and .at_80.latency_us > 0 and
  .max_iops_under.bound_us == 1000)' "$HOME/out" >/dev/null ||
  die "a summary lacks figures"
jq -e '.series | length == 6' "$HOME/out" >/dev/null ||
  die "the link and the pulled drive are to be series as well"
session=$(jq -r .session "$HOME/out")
[ -f "$session" ] || die "no session at $session"
# Rebuilding at once, or degraded once that is done.
has "$session" '.e == "vdisk" and .name == "db3" and .state != "healthy" and
  ((.reason // "") | test("offline"))' ||
  die "the pulled drive was not of db3"
[ "$(events "$session" | jq -rs 'map(select(.e == "vdisk" and
  .name == "db3")) | last | .state')" = healthy ] || die "db3 did not recover"
has "$session" '.e == "close"' || die "the session has no orderly end"

# Nothing else is left.
[ ! -e "$HOME/.cache/iodeck" ] || die "left: $(find "$HOME/.cache/iodeck")"
[ ! -e "$HOME/.local/state/iodeck" ] ||
  die "left: $(find "$HOME/.local/state/iodeck")"

# iodeck-session(5) has every type and member seen: those of a type beside it,
# deeper ones somewhere in the page.
page=$SOURCE_DIR/man/iodeck-session.5
marked() { # the words that .Cm marks
  sed -n 's/^\.\(It \)\{0,1\}Cm //p' | tr -s ' ,;.()' '\n' | sort -u
}
events "$session" | jq -r '.e as $e | keys[] |
  select(IN("e", "a", "i", "n", "t") | not) | $e + " " + .' |
  sort -u >"$HOME/members"
cut -d' ' -f1 "$HOME/members" | sort -u | while read -r type; do
  awk -v want=".It Cm $type" '
    /^\.It Cm/ || /^\.S[hs]/ { inside = $0 == want && !seen; seen += inside }
    inside' "$page" | marked >"$HOME/page-of-$type"
  sed -n "s/^$type //p" "$HOME/members" | comm -23 - "$HOME/page-of-$type" |
    sed "s/^/iodeck-session(5): $type has no /"
done >"$HOME/unnamed"
events "$session" | jq -r 'del(.config?) | paths[-1] | strings' | sort -u |
  { marked <"$page" >"$HOME/page"; comm -23 - "$HOME/page"; } |
  sed 's/^/iodeck-session(5): nothing of /' >>"$HOME/unnamed"
[ ! -s "$HOME/unnamed" ] || die "$(cat "$HOME/unnamed")"
[ "$(wc -l <"$HOME/members")" -gt 60 ] || die "too few members to be true"

# What was recorded is what was printed.
want 0 iodeck show "$session" --json
jq -e '[.series[0:4][].points | length] == [10, 10, 5, 5]' "$HOME/out" \
  >/dev/null || die "the session shows other than the run printed"
want 0 iodeck show "$session"
said out 'RAID-5'
want 0 iodeck compare "$session#RAID-6" "$session#RAID-6, 25 GbE" --json
jq -e '.readings | length >= 6' "$HOME/out" >/dev/null || die "comparison"
want 2 iodeck compare "$session" "$session"
said err 'say which series'
want 0 iodeck replay "$session"
said out 'RAID-1'
echo "the demo holds"
