#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by tests of log-structured vDisks under the real agent: a lab of six
# drives and three vDisks, load, and the journal of what was acknowledged,
# against which each opening reads all of them. $seed is the caller's.
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null && command -v zstd >/dev/null || {
  echo "skipped: needs jq and zstd"
  exit 77
}
conf=$HOME/.config/iodeck
export IODECK_JOURNAL="$HOME/journal"
mkdir -p "$IODECK_JOURNAL" "$conf/workloads" "$conf/suites"

# A number below $1; dash has no RANDOM, and a seed makes it the same again.
# shellcheck disable=SC2034 # drawn is for the caller
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

nothing_wrong() { # WHEN
  for v in db1 db2 db3; do
    [ "$(wrong $v)" -eq 0 ] || die "$v $1: $(wrong $v) wrong: $(first $v)"
  done
}

sweeps_keep() { s1=$(sweeps db1) s2=$(sweeps db2) s3=$(sweeps db3); }

swept() { # more sweeps than there were, of all
  [ "$(sweeps db1)" -gt "$s1" ] && [ "$(sweeps db2)" -gt "$s2" ] &&
    [ "$(sweeps db3)" -gt "$s3" ]
}

vdisk_is() { # vdisk_is VDISK JQ-CONDITION
  iodeck --json vdisk show "$1" 2>/dev/null | jq -e "$2" >/dev/null
}

# An empty drive in the place of another; no agent may run.
drive_replace() { # drive_replace NUMBER
  rm -rf "$HOME/d$1"
  mkdir "$HOME/d$1"
}
