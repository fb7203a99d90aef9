#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs each command of iodeck-tutorial(7) as printed, in order, in an empty HOME
# and an empty folder. A command is a line that begins with "$ " in the page's
# source; one that goes on ends in a backslash. Each must exit 0. A block whose
# first line is "# NAME.conf" is saved under that name beforehand.
set -u
page=${1:-$SOURCE_DIR/man/iodeck-tutorial.7}
[ -x "$BIN_DIR/iodeck" ] || {
  echo "skipped: $BIN_DIR/iodeck was not built"
  exit 77
}
home=$(mktemp -d "${TMPDIR:-/tmp}/docs-tutorial.XXXXXX") || exit 1

# A private place for everything the programs keep; agents end with it.
HOME=$home
XDG_RUNTIME_DIR=$home/run
PATH=$BIN_DIR:$PATH
export HOME XDG_RUNTIME_DIR PATH
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
mkdir -m 700 "$XDG_RUNTIME_DIR" "$home/here"

finish() {
  iodeck agent stop >/dev/null 2>&1
  iodeck --config lab.conf agent stop >/dev/null 2>&1
  rm -rf "$home"
}
trap finish EXIT

commands() {
  awk '
    more { sub(/^[> ]*/, ""); line = line " " $0 }
    /^\$ / { line = substr($0, 3); more = 1 }
    more && line ~ /\\e?$/ { sub(/[ ]*\\e?$/, "", line); next }
    more {
      gsub(/\\e/, "\\", line)
      gsub(/\\&/, "", line)
      print line
      more = 0
    }
  ' "$page"
}

files() {
  awk '
    /^\.Ed/ { file = "" }
    /^# [a-z]*\.conf$/ { file = $2 }
    file { print >file }
  ' "$page"
}

cd "$home/here" || exit 1
files
commands >"$home/commands"
[ -s "$home/commands" ] || {
  echo "$page: no command found"
  exit 1
}
count=0
while IFS= read -r command <&3; do
  count=$((count + 1))
  echo "\$ $command"
  sh -c "$command" </dev/null >"$home/output" 2>&1
  status=$?
  sed 's/^/  | /' "$home/output"
  if [ "$status" -ne 0 ]; then
    echo "command $count of $page ended with status $status"
    exit 1
  fi
done 3<"$home/commands"
echo "$count commands ran"
