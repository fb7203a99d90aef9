#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What an operator does to log-structured vDisks that hold data: drives that
# fail and return, a drive that is replaced by an empty one, policies and codecs
# that change. After each step everything is verified, and after each opening
# all of it reads as the journal says that it was written.
seed=1
. "$SOURCE_DIR/tests/kill/journal.sh"

load() { # a second of it on each
  for v in db1 db2 db3; do
    want 0 iodeck run "${1:-short}" "vdisk=$v" --headless
  done
}

whole() { # whole WHEN: healthy, its parity true, and read when opened again
  for v in db1 db2 db3; do
    until_true 60 vdisk_is $v '.state == "healthy"' ||
      die "$1: $v is not healthy: $(iodeck vdisk show $v)"
    want 0 iodeck vdisk verify $v
    said out 'agrees'
  done
  want 0 iodeck agent stop
  sweeps_keep
  want 0 iodeck vdisk list
  until_true 60 swept || die "$1: not all was read"
  nothing_wrong "$1"
}

sed 's/seconds = 60/seconds = 1/' "$conf/suites/many.conf" \
  >"$conf/suites/short.conf"
sed 's/at_share = 0.005/at_share = 0.2/; s/at_share = 0.012/at_share = 0.6/
  s/seconds = 60/seconds = 2/' "$conf/suites/pulled.conf" \
  >"$conf/suites/returns.conf"

load
whole "after load"

# ---- a drive fails under load, and returns ----
load returns
whole "after a drive that returned"

# ---- a drive is replaced by an empty one ----
want 0 iodeck agent stop
drive_replace 3
want 0 iodeck vdisk list
load
for v in db1 db2 db3; do
  until_true 60 vdisk_is $v 'all(.members[]; .state == "ok")' ||
    die "$v does not stand on the new drive: $(iodeck vdisk show $v)"
done
whole "after a replaced drive"

# ---- other policies and codecs, with data ----
want 0 iodeck vdisk set db1 raid=6 --wait
want 0 iodeck vdisk set db2 compression=none --wait
want 0 iodeck vdisk set db3 raid=1 ftt=2 compression=lz4 --wait
vdisk_is db1 '.raid == 6 and .k == 4' || die "db1 is not RAID-6"
vdisk_is db2 '.compression == "none"' || die "db2 compresses"
vdisk_is db3 '.raid == 1 and .compression == "lz4"' || die "db3 is no mirror"
whole "after a change"
load
whole "after load on what was changed"
echo "drives and policies came and went: nothing lost, nothing wrong"
