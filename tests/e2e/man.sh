#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The man pages against the program: clean mdoc, no reference into the void,
# each command, argument and option of the program's tables in its page with the
# same default, and nothing in the pages that the tables do not have.
set -u
cd "$SOURCE_DIR/man" || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/docs-man.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
HOME=$work
export HOME
unset XDG_CONFIG_HOME
status=0

fault() {
  printf '%s\n' "$*"
  status=1
}

# The lines of FILE from a list item "Ic COMMAND" to the next command's.
block() {
  awk -v want="$2" '
    /^\.It Ic / {
      name = $0
      sub(/^\.It Ic /, "", name)
      sub(/ (Ar|Op|Cm|Fl).*/, "", name)
      inside = name == want
    }
    /^\.(Ss|Sh)/ { inside = 0 }
    inside' "$1"
}

check_lint() {
  mandoc -T lint -W warning ./*.[1-9] || status=1
}

check_references() {
  for page in *.[1-9]; do
    sed -n 's/.*\.Xr \(iodeck[^ ]*\) \([0-9]\).*/\1.\2/p' "$page"
  done | sort -u | while read -r page; do
    [ -f "$page" ] || echo "$page is referred to and not there"
  done >"$work/lost"
  [ ! -s "$work/lost" ] || fault "$(cat "$work/lost")"
}

check_argument() { # COMMAND ARGUMENT KIND POSITIONAL DEFAULT VALUES
  text=$(block iodeck.1 "$1")
  if [ "$4" = true ]; then
    pattern="Ar.* $2"
    [ "$2" != "NAME=VALUE" ] || pattern='Ar NAME Ns = Ns Ar VALUE'
  elif [ "$3" = flag ]; then
    pattern="^\.It Fl -$2"
  else
    pattern="^\.It Cm $2 Ns ="
  fi
  printf '%s\n' "$text" | grep -q -- "$pattern" ||
    fault "iodeck(1), $1: argument $2 is not there as $pattern"
  for value in $(echo "$6" | tr '|' ' '); do
    printf '%s\n' "$text" | grep -qw -- "$value" ||
      case $2 in ftt) ;; *) fault "iodeck(1), $1: no word of $2 $value" ;; esac
  done
}

# Every command and argument of the table, as shell words with | between.
check_commands() {
  jq -r '.commands[] | [.name] | @tsv' "$work/tables" >"$work/names"
  while IFS= read -r name; do
    [ -n "$(block iodeck.1 "$name")" ] || fault "iodeck(1): no command $name"
  done <"$work/names"
  jq -r '.commands[] | .name as $c | .args[] |
    [$c, .name, .kind, .positional, "-", .values // "-"] | join("\u001f")' \
    "$work/tables" >"$work/args"
  while IFS=$(printf '\037') read -r name arg kind positional _ values; do
    [ "$values" != - ] || values=
    check_argument "$name" "$arg" "$kind" "$positional" "" "$values"
  done <"$work/args"
}

check_commands_back() {
  sed -n '/^\.Sh COMMANDS/,/^\.Sh SCREENS/s/^\.It Ic //p' iodeck.1 |
    sed 's/ \(Ar\|Op\|Cm\|Fl\).*//' >"$work/in-page"
  while IFS= read -r name; do
    grep -qx -- "$name" "$work/names" ||
      fault "iodeck(1): the program has no command $name"
    block iodeck.1 "$name" |
      sed -n -e 's/^\.It Cm \([a-z_]*\) Ns =.*/\1/p' \
        -e 's/^\.It Fl -\([a-z-]*\).*/\1/p' |
      while read -r arg; do
        jq -e --arg c "$name" --arg a "$arg" 'any(.commands[];
          .name == $c and any(.args[]; .name == $a))' \
          "$work/tables" >/dev/null || echo "iodeck(1), $name: no argument $arg"
      done >"$work/extra"
    [ ! -s "$work/extra" ] || fault "$(cat "$work/extra")"
  done <"$work/in-page"
}

# Options stand in the page in the table's order, each with its default.
check_options() {
  jq -r '.options[].name' "$work/tables" >"$work/options"
  sed -n '/^\.Sh OPTIONS/,/^\.Sh THE CLUSTER/s/^\.It Cm \([a-z_]*\) No.*/\1/p' \
    iodeck.conf.5 >"$work/options-in-page"
  diff "$work/options" "$work/options-in-page" ||
    fault "iodeck.conf(5): options differ from the table"
  jq -r '.options[] | select(.default) | .name + " " + .default' \
    "$work/tables" >"$work/defaults"
  while read -r name value; do
    sed -n "/^\.It Cm $name No/,/^Example/p" iodeck.conf.5 |
      tr -d , | grep -qiw -- "default $value" ||
      fault "iodeck.conf(5): $name has no \"default $value\""
  done <"$work/defaults"
}

# The sample configuration names every option.
check_sample() {
  while read -r name; do
    grep -q "$name = " "$SOURCE_DIR/conf/iodeck.conf" ||
      fault "conf/iodeck.conf: no $name"
  done <"$work/options"
}

# Long options of a program's --help against its page.
check_program() { # PROGRAM PAGE
  "$BIN_DIR/$1" --help 2>&1 | grep -oE '(^|[ [])--[a-z][a-z-]*' |
    tr -d ' [' | sort -u | while read -r option; do
    grep -q -- "Fl ${option#-}\b" "$2" || echo "$2: no $option of $1 --help"
  done >"$work/extra"
  [ ! -s "$work/extra" ] || fault "$(cat "$work/extra")"
  sed -n 's/^\.It Fl -\([a-z-]*\).*/--\1/p' "$2" | sort -u |
    while read -r option; do
      { "$BIN_DIR/$1" --help 2>&1; jq -r '.commands[].args[].name |
          "--" + .' "$work/tables"; } | grep -q -- "$option" ||
        echo "$2: $1 has no $option"
    done >"$work/extra"
  [ ! -s "$work/extra" ] || fault "$(cat "$work/extra")"
}

command -v mandoc >/dev/null && check_lint
check_references
[ -x "$BIN_DIR/iodeck" ] || {
  echo "$BIN_DIR/iodeck was not built"
  exit 1
}
"$BIN_DIR/iodeck" --json help >"$work/tables" || exit 1
check_commands
check_commands_back
check_options
check_sample
check_program iodeck iodeck.1
check_program iodeck-agent iodeck-agent.8
exit "$status"
