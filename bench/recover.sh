#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# memory and opening of log-structured vDisks, against what the manual states
#
# For each size: fully written, closed, opened; written in 4 KiB blocks until a
# checkpoint is nearly due; killed; opened again. Memory is what the process
# takes more than before, as the kernel counts it (VmRSS, at most VmHWM).
#
#   SIZES="1 4 16 64"     GiB
#   POLICY="2 1 4"        k, m and fault domains
#   BENCH_DIR=/var/tmp    where labels, logs and snapshots lie: 4 % of a size
#                         and some 300 MiB, times the domains; not tmpfs
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/iodeck-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck disable=SC2086 # lists of words
"${BIN_DIR:-build/release/bin}/bench_recover" "$work" ${POLICY:-2 1 4} \
  ${SIZES:-1 4 16 64}
