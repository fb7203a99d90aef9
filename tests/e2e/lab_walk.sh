#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The walk through a node failure of iodeck-lab(1), each command as printed: the
# programs stand where a node sees them, and labs where they do by default.
. "$SOURCE_DIR/tests/e2e/alone.sh"
[ -x "$BIN_DIR/iodeck" ] && [ -x "$BIN_DIR/iodeck-agent" ] || {
  echo "skipped: iodeck and iodeck-agent were not built"
  exit 77
}
local=$(mktemp -d "${TMPDIR:-/tmp}/lab-walk.XXXXXX") || exit 1
trap 'rm -rf "$local"' EXIT
mkdir "$local/bin" "$local/share"
cp "$BIN_DIR/iodeck" "$BIN_DIR/iodeck-agent" "$local/bin" &&
  cp -rL "$BIN_DIR/../share/iodeck" "$local/share" || exit 1
mount --bind "$local" /usr/local &&
  mount -t tmpfs -o mode=755 tmpfs /var/lib || exit 1
BIN_DIR=/usr/local/bin
sh "$SOURCE_DIR/tests/e2e/tutorial.sh" "$SOURCE_DIR/man/iodeck-lab.1" \
  >"$local/out" 2>&1
status=$?
cat "$local/out"
[ "$status" -eq 0 ] || exit 1

said() {
  grep -q -- "$1" "$local/out" || {
    echo "FAILED: expected \"$1\""
    exit 1
  }
}
# What the page says of the answers.
said '^  | n3$'
said '^  |   n3 .* up      cut '
said 'cluster n3, run running'
said '^  |   n3 .* failed  cut  *0$'
said 'Smoke: unfinished'
[ "$(grep -c 'Smoke: done' "$local/out")" -eq 2 ] || said 'Smoke: done, twice'
said 'agent iodeck-lab-n1: cluster iodeck-lab-n1'
said '^  | 25000000$'
said 'lab lab is removed'
[ -z "$(ls /run/netns)" ] || {
  echo "FAILED: namespaces are left"
  exit 1
}
