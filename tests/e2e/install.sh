#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What is installed works from where it was installed: the programs find each
# other and what came with them, and nothing of the build tree is needed.
set -u
[ -x "$BIN_DIR/iodeck" ] && [ -x "$BIN_DIR/iodeck-agent" ] || {
  echo "skipped: iodeck and iodeck-agent were not built"
  exit 77
}
command -v jq >/dev/null || {
  echo "skipped: needs jq"
  exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/install-e2e.XXXXXX") || exit 1
HOME=$work/home
XDG_RUNTIME_DIR=$work/run
export HOME XDG_RUNTIME_DIR
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

die() {
  echo "FAILED: $*"
  exit 1
}

DESTDIR=$work/stage cmake --install "$BIN_DIR/.." --prefix /usr \
  >"$work/log" 2>&1 || die "$(cat "$work/log")"
usr=$work/stage/usr
[ -x "$usr/bin/iodeck" ] && [ -x "$usr/bin/iodeck-agent" ] ||
  die "the programs are not in bin"
for file in man/man1/iodeck.1 man/man1/iodeck-lab.1 man/man5/iodeck.conf.5 \
  man/man5/iodeck-session.5 \
  man/man5/iodeck-vdisk.5 man/man5/iodeck-workload.5 man/man7/iodeck-policy.7 \
  man/man7/iodeck-tutorial.7 man/man8/iodeck-agent.8 \
  iodeck/iodeck.conf iodeck/published/curves.csv \
  bash-completion/completions/iodeck zsh/site-functions/_iodeck; do
  [ -s "$usr/share/$file" ] || die "share/$file was not installed"
done
for file in bundle.tar.gz bundle.manifest; do
  [ ! -f "$BIN_DIR/../libexec/iodeck/$file" ] ||
    cmp "$BIN_DIR/../libexec/iodeck/$file" "$usr/libexec/iodeck/$file" ||
    die "libexec/iodeck/$file was not installed"
done
grep -q '^complete -F _iodeck iodeck' \
  "$usr/share/bash-completion/completions/iodeck" ||
  die "the completion of bash completes nothing"

# Nothing of the build is in the way: iodeck is asked by its full name, without
# its agent in PATH.
cd "$work" || exit 1
iodeck() {
  "$usr/bin/iodeck" "$@"
}
iodeck --version | grep -q '^iodeck [0-9]' || die "--version"
for kind in suite workload; do
  iodeck --json $kind list | jq -e ".${kind}s | length > 0" >/dev/null ||
    die "no $kind is found"
done
for file in "$SOURCE_DIR"/conf/suites/*.conf; do
  iodeck suite show "$(basename "$file" .conf)" vdisk=x >/dev/null ||
    die "an installed suite does not resolve: $file"
done
iodeck compare "$usr/share/iodeck/published/curves.csv#OLTP 32K RAID6 25GbE" \
  "$usr/share/iodeck/published/curves.csv#OLTP 32K RAID6 100GbE" >/dev/null ||
  die "the published curves are not read"

# It goes to hosts that have little.
! ldd "$usr/bin/iodeck-agent" | grep -E 'ssh2|curses|readline|config' ||
  die "the agent needs a library that is the console's"

# Its own agent is started, and no other.
runs_from() { # FOLDER: a probe succeeds, and the agent that did it is there
  iodeck drive probe "$HOME" >"$work/out" 2>&1 || die "$(cat "$work/out")"
  read -r pid <"$(find "$HOME" "$XDG_RUNTIME_DIR" -name lock | head -n 1)"
  exe=$(readlink "/proc/$pid/exe")
  iodeck agent stop >/dev/null 2>&1
  case $exe in
  "$1"/iodeck-agent) ;;
  *) die "the agent that runs is $exe" ;;
  esac
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}
runs_from "$usr/bin"

# An agent in libexec is found as well.
mkdir -p "$usr/libexec/iodeck"
mv "$usr/bin/iodeck-agent" "$usr/libexec/iodeck/"
runs_from "$usr/libexec/iodeck"
echo "what is installed works"
