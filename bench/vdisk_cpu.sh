#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# what vDisks cost the processor: drives in memory, beside the bare ones
#
# All layouts, policies, codecs, data and depths; `-p 4+2 -w "write 4k"` and
# the like choose. See the head of vdisk_cpu.c for what the columns say.
set -eu
cd "$(dirname "$0")/.."
exec "${BIN_DIR:-build/release/bin}/bench_vdisk_cpu" "$@"
