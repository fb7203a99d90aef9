#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the bundle: what a Linux node of this machine's kind needs to run
# iodeck-agent and nbdkit, whatever it has installed: make.sh OUT AGENT [NBDKIT]
#
#   OUT/bundle.tar.gz     MANIFEST bin/ lib/ nbdkit/, one file
#   OUT/bundle.manifest   its hash, sizes, for which machines it is
#
#   OUT/bundle.d          what it was made of, for ninja
#
# The same inputs make the same bytes: names sorted, no times, no owners. gzip,
# because every node can unpack it: xz and zstd save a fifth, and are absent
# where little is installed. gzip -9 would save a two-hundredth for three times
# the time.
set -eu
LC_ALL=C
export LC_ALL
umask 077
out=$1
agent=$2
nbdkit=${3:-}

# offset: a range of a device. limit: one client at a time. ip: none but its
# peer. exitlast: ends with its client. fua: how durable, by force. noextents:
# nobody asks what is sparse. log: to find faults with. blocksize: clients of a
# vDisk that ask for less than a block of it.
filters='offset limit ip exitlast fua noextents log blocksize'
plugins='file'

mkdir -p "$out"
stage=$(mktemp -d "$out/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' HUP INT TERM

die() {
  echo "bundle: $*" >&2
  exit 1
}

# A program, by the name it is known by here: its debug symbols stay behind.
program() { # FILE NAME
  cp -L "$1" "$top/$2"
  strip --strip-debug "$top/$2"
  chmod 700 "$top/$2"
}

# What programs and modules are linked with, by the names they ask for; of the
# loader, the last part of the path that programs name.
libraries() { # FILE...
  LD_LIBRARY_PATH=$stage/stub ldd "$@" 2>"$stage/ldd" >"$stage/linked" ||
    die "$(cat "$stage/ldd")"
  ! grep 'not found' "$stage/linked" >&2 || die "a library is missing"
  awk '
    $2 == "=>" && $3 ~ /^\// { print $1, $3 }
    $1 ~ /^\/.*\/ld-linux/ { n = split($1, part, "/"); print part[n], $1 }' \
    "$stage/linked" | sort -u
}

# libnbd reads URIs by libxml2, which brings ICU: 38 MB, for what the agent
# never asks of it. A library that has the same names, and answers none, takes
# its place.
stub() {
  mkdir "$stage/stub"
  nbd=$(ldd "$agent" | awk '$1 ~ /^libnbd/ { print $3 }')
  [ -n "$nbd" ] || return 0
  nm -D --undefined-only "$nbd" |
    awk -v c="$stage/stub.c" -v map="$stage/stub.map" '
      split($NF, part, "@") == 2 && part[2] ~ /^LIBXML2/ {
        print "void *" part[1] "(void) { return 0; }" >c
        names[part[2]] = names[part[2]] part[1] "; "
      }
      END {
        for (version in names)
          print version " { global: " names[version] "};" >map
      }'
  [ -f "$stage/stub.map" ] || return 0
  "${CC:-cc}" -shared -nostdlib -s -Wl,--build-id=none \
    -Wl,-soname,libxml2.so.2 -Wl,--version-script="$stage/stub.map" \
    -o "$stage/stub/libxml2.so.2" -x c "$stage/stub.c"
}

config() { # NAME: of what nbdkit says of itself
  "$nbdkit" --dump-config | sed -n "s/^$1=//p"
}

top=$stage/top
mkdir "$top" "$top/bin" "$top/lib"
program "$agent" bin/iodeck-agent
set -- "$agent"
version=none
if [ -n "$nbdkit" ]; then
  version=$(config version)
  mkdir "$top/nbdkit"
  program "$nbdkit" bin/nbdkit
  set -- "$@" "$nbdkit"
  for name in $plugins; do
    set -- "$@" "$(config plugindir)/nbdkit-$name-plugin.so"
  done
  own=$(dirname "$agent")/nbdkit-iodeck-plugin.so
  [ ! -f "$own" ] || set -- "$@" "$own"
  for name in $filters; do
    set -- "$@" "$(config filterdir)/nbdkit-$name-filter.so"
  done
  for file in "$@"; do
    case $file in
    "$own") program "$own" "nbdkit/${own##*/}" ;;
    *.so) cp -L "$file" "$top/nbdkit/" ;;
    esac
  done
fi
stub
libraries "$@" >"$stage/libs"
printf '%s\n' "$@" >"$stage/inputs"
[ -z "$(cut -d ' ' -f 1 "$stage/libs" | uniq -d)" ] ||
  die "two libraries of one name: $(cat "$stage/libs")"
while read -r name path; do
  cp -L "$path" "$top/lib/$name"
done <"$stage/libs"
[ -f "$top/lib/ld-linux-x86-64.so.2" ] || die "no loader for x86-64 was found"
chmod 700 "$top/lib/ld-linux-x86-64.so.2"

(cd "$top" && find . -type f | sed 's|^\./||' | sort | xargs sha256sum) \
  >"$stage/MANIFEST"
mv "$stage/MANIFEST" "$top/MANIFEST"
unpacked=$(find "$top" -type f -exec cat {} + | wc -c)

(cd "$top" && tar --sort=name --format=ustar --owner=0 --group=0 \
  --numeric-owner --mtime=@0 -cf - -- *) | gzip -n >"$stage/bundle.tar.gz"
cat >"$stage/bundle.manifest" <<END
hash $(sha256sum <"$stage/bundle.tar.gz" | cut -d ' ' -f 1)
bytes $(wc -c <"$stage/bundle.tar.gz")
unpacked $unpacked
system Linux
machine x86_64
nbdkit $version
END
printf '%s: %s\n' "$out/bundle.tar.gz" \
  "$(cut -d ' ' -f 2 "$stage/libs" | grep -v "^$stage" |
    cat - "$stage/inputs" | tr '\n' ' ')" \
  >"$stage/bundle.d"
chmod 644 "$stage/bundle.manifest" "$stage/bundle.tar.gz"
mv "$stage/bundle.d" "$stage/bundle.manifest" "$stage/bundle.tar.gz" "$out/"
[ "$version" != none ] || echo "bundle: without nbdkit: not installed here" >&2
