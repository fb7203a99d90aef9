#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# iodeck's load engine beside fio and a bare ring: IOPS for a second of CPU
#
# 4 KiB random reads by one thread at 1, 32 and 128 outstanding, in turns, so
# that all meet the same noise; medians. Targets: a file in the page cache, the
# same file with O_DIRECT, and nothing at all (null). iodeck keeps its full
# histograms, fio its default statistics, both as a user would have them; the
# bare ring (rawloop) does nothing for an I/O and shows the limit. CPU is that
# of each whole process, as the kernel counts it, its start included: so runs
# are not short. Then how well open loop keeps a schedule.
#
#   ROUNDS=5 SECONDS_EACH=4 DEPTHS="1 32 128" TARGETS="cached direct null"
#   BENCH_DIR=/var/tmp    where a file of BENCH_MIB (512) MiB is made; not tmpfs
#   T_IO_URING=PATH       fio's t/io_uring, where somebody has built it
set -eu
cd "$(dirname "$0")/.."

bin=${BIN_DIR:-build/release/bin}
dir=${BENCH_DIR:-/var/tmp}
mib=${BENCH_MIB:-512}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-4}
depths=${DEPTHS:-1 32 128}
targets=${TARGETS:-cached direct null}
tiour=${T_IO_URING:-$(command -v t_io_uring || :)}

work=$(mktemp -d "$dir/iodeck-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
file=$work/data

die() {
  echo "bench load: $*" >&2
  exit 1
}
[ -x "$bin/bench_load" ] || die "no $bin/bench_load: run ./dev bench load"

# Runs a program, leaves its CPU seconds in $cpu and its output in $out.
measure() {
  "$bin/bench_load" cpu "$@" >"$work/out" 2>"$work/err" || {
    cat "$work/out" "$work/err" >&2
    die "$1 failed"
  }
  out=$(cat "$work/out")
  cpu=$(awk '$1 == "cpu" { print $2 + $3 }' "$work/err")
}

# record WHO OPS SECONDS: a line for this round.
record() {
  echo "$target $depth $1 $2 $3 $cpu" >>"$work/results"
}

run_iodeck() {
  case $target in
  cached) measure "$bin/bench_load" -b -f "$file" -n "$depth" -s "$seconds" ;;
  direct) measure "$bin/bench_load" -f "$file" -n "$depth" -s "$seconds" ;;
  null) measure "$bin/bench_load" -n "$depth" -s "$seconds" ;;
  esac
  # shellcheck disable=SC2086 # two fields of it
  set -- $out
  record iodeck "$1" "$2"
}

run_fio() {
  batch=$(((depth + 1) / 2))
  set -- --name=b --rw=randread --bs=4k --iodepth="$depth" --thread \
    --iodepth_batch_submit="$batch" --iodepth_batch_complete_min="$batch" \
    --iodepth_batch_complete_max="$batch" --norandommap --randrepeat=0 \
    --random_generator=tausworthe64 --time_based --runtime="$seconds" \
    --output-format=json
  case $target in
  cached) set -- "$@" --ioengine=io_uring --fixedbufs --registerfiles \
    --filename="$file" --direct=0 --invalidate=0 ;;
  direct) set -- "$@" --ioengine=io_uring --fixedbufs --registerfiles \
    --filename="$file" --direct=1 --invalidate=0 ;;
  null) set -- "$@" --ioengine=null --size=64g ;;
  esac
  measure fio "$@"
  record fio "$(jq -r '.jobs[0].read.total_ios' "$work/out")" \
    "$(jq -r '.jobs[0].read.runtime / 1000' "$work/out")"
}

run_raw() {
  case $target in
  cached) measure "$bin/rawloop" "$file" "$depth" "$seconds" 0 ;;
  direct) measure "$bin/rawloop" "$file" "$depth" "$seconds" 1 ;;
  null) measure "$bin/rawloop" nop "$depth" "$seconds" 0 ;;
  esac
  # shellcheck disable=SC2086 # two fields of it
  set -- $out
  record raw "$1" "$2"
}

# Its last figure is a rate a second; the sum over the seconds is the count.
run_tiour() {
  batch=$(((depth + 1) / 2))
  set -- -d"$depth" -s"$batch" -c"$batch" -b4096 -n1 -F1 -B1 -p0 \
    -r"$seconds"
  case $target in
  cached) measure "$tiour" "$@" -O0 "$file" ;;
  direct) measure "$tiour" "$@" -O1 "$file" ;;
  null) measure "$tiour" "$@" -N1 "$file" ;;
  esac
  iops=$(sed -n 's/^Maximum IOPS=//p' "$work/out" | awk '
    /K$/ { print $1 * 1000; next } /M$/ { print $1 * 1000000; next }
    { print $1 }')
  record t/io_uring "$(echo "$iops $seconds" | awk '{ print $1 * $2 }')" \
    "$seconds"
}

have() {
  case $1 in
  iodeck) return 0 ;;
  fio) command -v fio >/dev/null && command -v jq >/dev/null ;;
  raw) [ -x "$bin/rawloop" ] ;;
  tiour) [ -n "$tiour" ] ;;
  esac
}

table() {
  awk '
    function median(key,    n, i, j, t, v) {
      n = split(values[key], v, " ")
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) {
          t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
        }
      return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    function spread(key,    n, i, v, lo, hi) {
      n = split(values[key], v, " ")
      lo = hi = v[1]
      for (i = 2; i <= n; i++) {
        if (v[i] < lo) lo = v[i]
        if (v[i] > hi) hi = v[i]
      }
      return (hi - lo) / median(key) * 100
    }
    {
      key = $1 " " $2 " " $3
      if (!(key in values)) order[++keys] = key
      values[key] = values[key] " " $4 / $6
      values[key "/s"] = values[key "/s"] " " $4 / $5
    }
    END {
      printf "%-8s %4s %-11s %11s %12s %7s %9s\n", "target", "out", "program",
        "k IOPS", "k/CPU s", "spread", "iodeck is"
      for (i = 1; i <= keys; i++) {
        split(order[i], k, " ")
        mine = k[1] " " k[2] " iodeck"
        printf "%-8s %4s %-11s %11.1f %12.1f %6.0f%% %8.2fx\n", k[1], k[2],
          k[3], median(order[i] "/s") / 1000, median(order[i]) / 1000,
          spread(order[i]), median(mine) / median(order[i])
      }
    }' "$work/results"
}

open_loop() {
  printf '\n%-8s %9s %10s %11s %8s %8s %8s %7s\n' schedule asked/s scheduled \
    achieved mean_us p50_us p99_us cores
  for schedule in uniform poisson; do
    for rate in 1000 10000 50000; do
      if [ "$schedule" = poisson ]; then
        measure "$bin/bench_load" -n 128 -s "$seconds" -r "$rate" -p
      else
        measure "$bin/bench_load" -n 128 -s "$seconds" -r "$rate"
      fi
      echo "$out" | awk -v s="$schedule" -v r="$rate" -v cpu="$cpu" '{
        printf "%-8s %9d %10.1f %10.3f%% %8.1f %8.1f %8.1f %7.3f\n", s, r,
          $3 / $2, $1 / $3 * 100, $4, $5, $6, cpu / $2 }'
    done
  done
}

needs_file=
for target in $targets; do
  [ "$target" = null ] || needs_file=1
done
if [ -n "$needs_file" ]; then
  [ "$(stat -f -c %T "$work")" != tmpfs ] ||
    die "$dir is a tmpfs, which io_uring serves by threads: set BENCH_DIR"
  dd if=/dev/urandom of="$file" bs=1M count="$mib" status=none
  sync "$file"
fi

round=1
while [ "$round" -le "$rounds" ]; do
  for target in $targets; do
    for depth in $depths; do
      [ ! -t 2 ] || printf '\rround %d of %d: %s, %d outstanding   ' \
        "$round" "$rounds" "$target" "$depth" >&2
      [ "$target" != cached ] || cat "$file" >/dev/null
      for who in iodeck fio raw tiour; do
        have "$who" && "run_$who"
      done
    done
  done
  round=$((round + 1))
done
[ ! -t 2 ] || printf '\r%60s\r' '' >&2
table
open_loop
