#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What the console costs with a run at ten frames a second: CPU of its whole
# process at 80x24 and 200x60 on the made-up session, which draws ten frames a
# second when an event comes every 100 ms.
#
#   SECONDS_EACH=10
set -eu
cd "$(dirname "$0")/.."

bin=${BIN_DIR:-build/release/bin}
seconds=${SECONDS_EACH:-10}
[ -x "$bin/bench_console" ] || {
  echo "bench console: no $bin/bench_console: run ./dev bench console" >&2
  exit 1
}
for size in "80 24" "200 60"; do
  # shellcheck disable=SC2086
  "$bin/bench_console" "$bin/test_console" $size 100 "$seconds"
done
