#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every header compiles on its own, under stricter warnings than the sources.
set -u
cd "${SOURCE_DIR:-$(dirname "$0")/../..}" || exit 1
cc=${CC:-cc}
status=0

strict() {
  printf '#include "%s"\n' "$1" | "$cc" -std=c17 -D_GNU_SOURCE -I. \
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
    -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wundef -Wvla \
    -Wredundant-decls -Werror -fsyntax-only -x c -
}

for header in $(find engine backend tui -name '*.h' | sort); do
  strict "$header" || {
    echo "$header: does not compile on its own"
    status=1
  }
done
exit "$status"
