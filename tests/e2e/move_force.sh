#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A node that has a vDisk open stands still, with writes under way; another
# takes the vDisk by force and goes on. What the first one still wants to write
# when it wakes up goes nowhere: it finds that it is no longer the owner, lends
# its drive, and that is resynced.
. "$SOURCE_DIR/tests/e2e/lab.sh"
for tool in jq nbdkit nbdcopy; do
  command -v $tool >/dev/null || {
    echo "skipped: needs $tool"
    exit 77
  }
done
mkdir -p "$HOME/.config/iodeck"
{
  echo 'cluster = { name = "lab"; node = { nbd_ports = "21200-21399"; };'
  echo '  domains = ('
  for n in 1 2 3; do
    [ $n = 1 ] || echo ','
    mkdir "$HOME/d$n"
    echo "{ name = \"n$n\"; node = {}; drives = ( { name = \"d0\";"
    echo "  path = \"~/d$n\"; size = \"256M\"; } ); }"
  done
  echo '); };'
} >"$HOME/.config/iodeck/iodeck.conf"

state() {
  iodeck --json vdisk show db1 2>/dev/null | jq -r .state
}
is() {
  [ "$(state)" = "$1" ]
}
socket() {
  want 0 iodeck --json vdisk export db1
  jq -er .export.uri "$HOME/out"
}
# What is on db1 is what n2 wrote.
same() {
  nbdcopy "$1" "$HOME/back" || die "db1 cannot be read: $2"
  cmp "$HOME/new" "$HOME/back" || die "not what was written: $2"
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

want 0 iodeck vdisk create db1 size=64M raid=1 owner=n1
head -c 67108864 /dev/urandom >"$HOME/old"
head -c 67108864 /dev/urandom >"$HOME/new"
uri=$(socket)
nbdcopy "$HOME/old" "$uri" || die "db1 cannot be written at $uri"

# ---- n1 stands still in the middle of its writes
n1=$(iodeck --json node list |
  jq '.hosts[] | select(.agent == "lab.n1") | .pid')
while nbdcopy "$HOME/old" "$uri" 2>/dev/null; do :; done &
writer=$!
sleep 0.3
stopped="$n1 $(pgrep -P "$n1" | tr '\n' ' ')"
# shellcheck disable=SC2086 # a list of pids
kill -STOP $stopped

# ---- n2 takes it, but only by force
want 1 iodeck vdisk move db1 n2
said err 'force'
want 0 iodeck vdisk move db1 n2 --force
uri=$(socket)
nbdcopy "$HOME/new" "$uri" || die "db1 cannot be written on n2"
same "$uri" "on n2"

# ---- n1 wakes up: what it still writes goes nowhere
# shellcheck disable=SC2086
kill -CONT $stopped
stopped=
until_true 60 is healthy || die "with n1 back db1 is $(state)"
wait "$writer"
same "$uri" "after n1 woke up"
want 0 iodeck vdisk unexport db1
want 0 iodeck vdisk verify db1

# ---- and takes it back in good order
want 0 iodeck vdisk move db1 n1
until_true 20 is healthy || die "back on n1 db1 is $(state)"
uri=$(socket)
same "$uri" "back on n1"
want 0 iodeck vdisk unexport db1
echo "a vDisk is taken from a node that stands still, which finds so out"
