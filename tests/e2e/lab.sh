#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by the tests of the built programs: an empty HOME that is removed at
# the end, a small cluster of four directories, and ways to say what failed.
[ -x "$BIN_DIR/iodeck" ] && [ -x "$BIN_DIR/iodeck-agent" ] || {
  echo "skipped: iodeck and iodeck-agent were not built"
  exit 77
}
HOME=$(mktemp -d "${TMPDIR:-/tmp}/deck-e2e.XXXXXX") || exit 1
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
XDG_RUNTIME_DIR=$HOME/run
PATH=$BIN_DIR:$PATH
export HOME XDG_RUNTIME_DIR PATH
mkdir -m 700 "$XDG_RUNTIME_DIR"

finish() {
  status=$?
  iodeck agent stop >/dev/null 2>&1
  cd /
  ! [ -d "$HOME/small" ] || umount "$HOME/small" 2>/dev/null
  rm -rf "$HOME"
  exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

die() {
  echo "FAILED: $*"
  exit 1
}

# want STATUS COMMAND...: its output goes to $HOME/out and $HOME/err.
want() {
  expected=$1
  shift
  "$@" >"$HOME/out" 2>"$HOME/err" </dev/null
  got=$?
  [ "$got" -eq "$expected" ] && return
  sed 's/^/  out: /' "$HOME/out"
  sed 's/^/  err: /' "$HOME/err"
  die "$*: exit status $got, expected $expected"
}

# said FILE WORDS: the last command's out or err has the words.
said() {
  grep -q -- "$2" "$HOME/$1" && return
  sed "s/^/  $1: /" "$HOME/$1"
  die "expected \"$2\" in $1"
}

# until_true SECONDS COMMAND...: polls.
until_true() {
  tries=$(($1 * 10))
  shift
  while [ "$tries" -gt 0 ]; do
    "$@" >/dev/null 2>&1 && return 0
    tries=$((tries - 1))
    sleep 0.1
  done
  return 1
}

# A cluster of four domains of one small directory each, shaped to be slow
# enough that a busy machine keeps up.
cluster() {
  mkdir -p "$HOME/.config/iodeck" "$HOME/d1" "$HOME/d2" "$HOME/d3" "$HOME/d4"
  {
    echo 'cluster = { name = "lab"; domains = ('
    for n in 1 2 3 4; do
      [ $n = 1 ] || echo ','
      echo "{ name = \"n$n\"; drives = ( { name = \"d0\";"
      echo "  path = \"~/d$n\"; size = \"64M\";"
      echo "  shape = { iops = 500; }; } ); }"
    done
    echo ');'
    echo 'policies = ( { name = "mirror"; raid = 1; ftt = 1; } );'
    echo 'vdisks = ( { name = "db1"; size = "8M"; policy = "mirror"; } ); };'
  } >"$HOME/.config/iodeck/iodeck.conf"
}

# Events of a session, one a line.
events() {
  zstd -dcq "$1" 2>/dev/null
}

# Each writer's sequence has no gap and no double within an incarnation.
sequence_is_whole() {
  events "$1" | jq -es '
    group_by([.a, .i]) | all(.[];
      (map(.n) | sort) as $n | $n == [range($n[0]; $n[0] + ($n | length))])' \
    >/dev/null
}

# The pid that an agent says of itself in a session.
agent_pid() {
  events "$1" | jq -s 'map(select(.e == "host")) | last | .agent.pid'
}

# has SESSION JQ-CONDITION: some event is so.
has() {
  events "$1" | jq -es "any(.[]; $2)" >/dev/null
}
