#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# vDisks held by their drives: policies, layouts, limits; beside btrfs
#
# Drive-bound: seven drives in memory behind links that hold each to a
# bandwidth, IOPS and a latency, by default about a tenth of a P4500, so that a
# second here is a tenth of one there and unevenness shows. The engine's own
# code runs under the simulated reactor: a virtual clock, CPU for free. One row
# is repeated in real time. In place uses as many of the drives as its policy
# has members, so layouts are compared by drive.
#
# The limit is the theory of engine/vdisk/limit.h with the drives' own measured
# speed, 32 blocks a record, the log 2 % of the size, and the cleaning that was
# measured.
#
# Then btrfs on loop devices over tmpfs, 4 KiB random writes by 8 threads, with
# fsync after each and without, beside our vDisk on the same devices, whose
# writes are always durable. Last, what a core does: bench/vdisk_cpu.sh.
#
#   PARTS="drives real btrfs cpu"   RATE=100e6 IOPS=4000 LATENCY_US=80
#   MIB=1024 SECONDS_EACH=10 OUTSTANDING=256 AGE=1.25
set -eu
cd "$(dirname "$0")/.."

bin=${BIN_DIR:-build/release/bin}
parts=${PARTS:-drives real btrfs cpu}
rate=${RATE:-100e6}
iops=${IOPS:-4000}
latency=${LATENCY_US:-80}
mib=${MIB:-1024}
seconds=${SECONDS_EACH:-10}
outstanding=${OUTSTANDING:-256}
age=${AGE:-1.25}
policies=${POLICIES:-0:7:0 1:1:1 5:2:1 5:4:1 1:1:2 6:4:2 1:1:3}

work=$(mktemp -d "${BENCH_DIR:-/dev/shm}/iodeck-vdisk.XXXXXX")
loops=
cleanup() {
  umount "$work/mnt" 2>/dev/null || :
  for loop in $loops; do
    losetup -d "$loop" 2>/dev/null || :
  done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

die() {
  echo "bench vdisk: $*" >&2
  exit 1
}
[ -x "$bin/bench_vdisk" ] || die "no $bin/bench_vdisk: run ./dev bench vdisk"

name() {
  case $1 in
  0:*) echo "RAID-0 $(echo "$1" | cut -d: -f2)" ;;
  1:*) echo "RAID-1 FTT $(echo "$1" | cut -d: -f3)" ;;
  *) echo "RAID-$(echo "$1" | tr : ' ' | awk '{ print $1, $2 "+" $3 }')" ;;
  esac
}

# drive ARGUMENT...: a run on modelled drives.
drive() {
  [ ! -t 2 ] || printf '\r%-70s' "$*" >&2
  nice "$bin/bench_vdisk" -z "$mib" -b "$rate" -i "$iops" -u "$latency" \
    -s "$seconds" -q "$outstanding" "$@"
}

# note LAYOUT POLICY WORK FILL: stdin's figures as a line of results.
note() {
  sed "s|^|layout $1 policy $2 work $3 full $4 |" >>"$work/results"
}

measure_drives() {
  drive -l drive -w sequential -k 131072 -q 8 -f 0.1 | note drive - sequential 0
  drive -l drive -w random -q 8 -f 0.1 | note drive - random 0
  drive -l drive -w read -q 8 -f 0.1 | note drive - read 0
  for policy in $policies; do
    for full in 0.4 1.0; do
      drive -P "$policy" -f "$full" -a "$age" |
        note log "$policy" random "$full"
    done
    drive -P "$policy" -w sequential -k 1048576 -q 32 -f 0.4 -a 1 |
      note log "$policy" sequential 0.4
    drive -P "$policy" -w read -f 0.4 | note log "$policy" read 0.4
    for job in random sequential read; do
      block=4096 depth=$outstanding
      [ $job != sequential ] || block=1048576 depth=32
      drive -l inplace -P "$policy" -w $job -k $block -q "$depth" -f 0.4 |
        note inplace "$policy" $job 0.4
    done
  done
  [ ! -t 2 ] || printf '\r%70s\r' '' >&2
}

# What the tables need of each line: its keys and values by name.
# shellcheck disable=SC2016 # awk has its own
table_lib='
  function width(p,    v) { split(p, v, ":"); return v[2] + v[3] }
  function read_line(    i) {
    split("", f)
    for (i = 1; i < NF; i += 2) f[$i] = $(i + 1)
    id = f["layout"] " " f["policy"] " " f["work"] " " f["full"]
    for (i in f) all[id, i] = f[i]
    if (f["layout"] == "log" && !(f["policy"] in seen)) {
      seen[f["policy"]]; order[++policies] = f["policy"]
    }
  }
  function of(l, p, w, u, key) { return all[l " " p " " w " " u, key] + 0 }
  function name(p,    v) {
    split(p, v, ":")
    if (v[1] == 0) return "RAID-0 " v[2]
    if (v[1] == 1) return "RAID-1 FTT" v[3]
    return "RAID-" v[1] " " v[2] "+" v[3]
  }
  function drives_speed() {
    bytes = of("drive", "-", "sequential", 0, "mbs") * 1e6
    writes = of("drive", "-", "random", 0, "iops")
    reads = of("drive", "-", "read", 0, "iops")
  }
  { read_line() }'

tables() {
  awk "$table_lib"'
  function random(full, title,    i, p, l, limit, base) {
    printf "\n%s\n%-12s %7s %7s %6s %6s %6s | %5s = %5s %5s %5s %5s | " \
      "%4s %4s %5s %7s\n", title, "policy", "IOPS", "limit", "share", "to R1",
      "theory", "W", "log", "dest", "clean", "snap", "w", "u", "F", "slowest"
    for (i = 1; i <= policies; i++) {
      p = order[i]; l = "log"
      split(p, v, ":")
      base = "1:1:" v[3]
      limit = 7 * bytes / (4096 * of(l, p, "random", full, "theory"))
      x = of(l, p, "random", full, "iops")
      b = of(l, base, "random", full, "iops")
      t = of(l, p, "random", full, "theory")
      printf "%-12s %7d %7d %6.2f %6s %6s | %5.2f = %5.2f %5.2f %5.2f %5.2f" \
        " | %4.2f %4.2f %5.3f %7.2f\n", name(p), x, limit, x / limit,
        b ? sprintf("%.2f", x / b) : "-",
        b ? sprintf("%.2f", of(l, base, "random", full, "theory") / t) : "-",
        of(l, p, "random", full, "W"), of(l, p, "random", full, "log"),
        of(l, p, "random", full, "destage"), of(l, p, "random", full, "clean"),
        of(l, p, "random", full, "snap"), of(l, p, "random", full, "w"),
        of(l, p, "random", full, "u"), of(l, p, "random", full, "F"),
        of(l, p, "random", full, "slowest")
    }
  }
  END {
    drives_speed()
    printf "Each drive by itself: %.1f MB/s written, %d random writes/s, " \
      "%d random reads/s.\n", bytes / 1e6, writes, reads
    printf "\"to R1\": beside RAID-1 of the same FTT; \"theory\": what the " \
      "limits say of it.\n\"slowest\": the worst second by the mean.\n"
    random("0.4", "4 KiB random durable writes, 40 % of addresses in use")
    random("1.0", "The same with all addresses in use: 80 % of the space")
    printf "\n1 MiB sequential writes, 4 KiB random reads; log and in place " \
      "by drive used\n%-12s %7s %7s %6s %6s | %8s %7s %6s | %8s %8s %6s | " \
      "%7s %6s\n", "policy", "MB/s", "limit", "share", "to R1", "reads/s",
      "limit", "share", "writes/d", "in place", "ratio", "seq/d", "ratio"
    for (i = 1; i <= policies; i++) {
      p = order[i]; n = width(p)
      split(p, v, ":")
      x = of("log", p, "sequential", "0.4", "mbs")
      limit = 7 * bytes / 1e6 / of("log", p, "sequential", "0.4", "theory")
      b = of("log", "1:1:" v[3], "sequential", "0.4", "mbs")
      r = of("log", p, "read", "0.4", "iops")
      lw = of("log", p, "random", "0.4", "iops") / 7
      iw = of("inplace", p, "random", "0.4", "iops") / n
      is = of("inplace", p, "sequential", "0.4", "mbs") / n
      printf "%-12s %7.1f %7.1f %6.2f %6s | %8d %7d %6.2f | %8d %8d %6.2f | " \
        "%7.1f %6.2f\n", name(p), x, limit, x / limit,
        b ? sprintf("%.2f", x / b) : "-", r, 7 * reads, r / (7 * reads), lw,
        iw, iw ? lw / iw : 0, is, is ? x / 7 / is : 0
    }
  }' "$work/results"
}

measure_real() {
  echo
  echo "RAID-5 4+1, random writes, 40 % in use, again in real time:"
  drive -T -P 5:4:1 -f 0.4 -a 0.3 >"$work/real" || return 0
  drive -P 5:4:1 -f 0.4 -a 0.3 >"$work/virtual"
  awk '{
    for (i = 1; i < NF; i += 2) f[$i] = $(i + 1)
    printf "%-8s %7d IOPS, p50 %d us, W %.2f, slowest second %.2f, CPU %.1f s" \
      " for %.1f s\n", NR == 1 ? "real" : "virtual", f["iops"], f["p50us"],
      f["W"], f["slowest"], f["cpu"], f["seconds"]
  }' "$work/real" "$work/virtual"
}

# ---- btrfs -------------------------------------------------------------------

why_no_btrfs() {
  for tool in fio jq losetup mkfs.btrfs mount; do
    command -v $tool >/dev/null || {
      echo "there is no $tool"
      return
    }
  done
  [ "$(id -u)" -eq 0 ] || echo "loop devices need root"
}

loops_make() {
  i=0
  while [ $i -lt 7 ]; do
    truncate -s 1G "$work/disk$i"
    loop=$(losetup -f --show --direct-io=off "$work/disk$i" 2>/dev/null) ||
      return 1
    loops="$loops $loop"
    i=$((i + 1))
  done
}

# fio IOPS FSYNC DIR
fio_iops() {
  fio --name=w --directory="$2" --rw=randwrite --bs=4k --size=96m \
    --numjobs=8 --thread --ioengine=psync --direct=1 --fsync="$1" \
    --fallocate=none --norandommap --randrepeat=0 --time_based --runtime=5 \
    --group_reporting --refill_buffers --output-format=json |
    jq -r '.jobs[0].write.iops | floor'
}

measure_btrfs() {
  echo
  why=$(why_no_btrfs)
  [ -n "$why" ] || loops_make || why="loop devices cannot be set up here"
  if [ -z "$why" ]; then
    # shellcheck disable=SC2086 # a list of devices
    set -- $loops
    mkdir -p "$work/mnt"
    mkfs.btrfs -q -f -d raid1 -m raid1 "$@" >/dev/null 2>&1 &&
      mount -t btrfs "$1" "$work/mnt" 2>/dev/null ||
      why="this kernel does not mount btrfs"
    umount "$work/mnt" 2>/dev/null || :
  fi
  if [ -n "$why" ]; then
    echo "btrfs: left out, $why"
    return
  fi
  echo "4 KiB random writes, 8 at a time, loop devices over tmpfs, IOPS:"
  printf '%-9s %10s %10s | %-12s %10s %7s %7s\n' btrfs fsync without ours \
    durable ratio ratio
  for pair in raid1=1:1:1 raid1c3=1:1:2 raid5=5:4:1 raid6=6:4:2; do
    profile=${pair%%=*} policy=${pair#*=}
    meta=raid1
    [ "$profile" != raid1c3 ] && [ "$profile" != raid6 ] || meta=raid1c3
    mkfs.btrfs -q -f -d "$profile" -m $meta "$@" >/dev/null 2>&1
    mount -t btrfs "$1" "$work/mnt"
    sync_iops=$(fio_iops 1 "$work/mnt")
    rm -f "$work/mnt"/*
    free_iops=$(fio_iops 0 "$work/mnt")
    umount "$work/mnt"
    files=
    for loop in "$@"; do
      files="$files -F $loop"
    done
    # shellcheck disable=SC2086 # a list of arguments
    ours=$("$bin/bench_vdisk" $files -z 1024 -P "$policy" -q 8 -s 5 -a 0.1 \
      -f 0.4 | awk '{ print $2 }')
    echo "$profile $sync_iops $free_iops $ours $(name "$policy")" | awk '{
      printf "%-9s %10d %10d | %-12s %10d %6.1fx %6.1fx\n", $1, $2, $3,
        $5 " " $6 $7, $4, $4 / $2, $4 / $3 }'
  done
}

for part in $parts; do
  case $part in
  drives)
    measure_drives
    tables
    ;;
  real) measure_real ;;
  btrfs) measure_btrfs ;;
  cpu) [ ! -f bench/vdisk_cpu.sh ] || sh bench/vdisk_cpu.sh ;;
  *) die "no such part: $part" ;;
  esac
done
