#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The mechanical rules of the house, so that no reader has to look for them:
# licence lines, lengths, layers, layout, forgotten files. CONTRIBUTING.md says
# what each is for. Prints one line a fault: FILE:LINE: what.
set -u
cd "${SOURCE_DIR:-$(dirname "$0")/../..}" || exit 1
faults=$(mktemp) || exit 1
trap 'rm -f "$faults"' EXIT

# The files git knows and, not yet added, those it would take.
if ! git rev-parse --git-dir >/dev/null 2>&1; then
  echo "skipped: not a git checkout, so its files cannot be told from others"
  exit 77
fi
files() {
  git ls-files --cached --others --exclude-standard -- "$@" |
    while read -r file; do
      [ ! -f "$file" ] || printf '%s\n' "$file"
    done
}

# Prints stdin's lines as faults of a kind.
fault() {
  sed "s|\$|  <- $1|" >>"$faults"
}

# Files written by hand; goldens, corpora and published data are not.
by_hand() {
  files '*.c' '*.h' '*.sh' dev .ci/run '*CMakeLists.txt' '*.cmake' \
    'man/*.[1-9]' 'conf/*.conf' 'conf/**/*.conf'
}

code() {
  files 'engine/**.[ch]' 'backend/**.[ch]' 'tui/**.[ch]' 'tests/**.[ch]'
}

# One process for all files: there are hundreds, and a check is run often.
check_licence() {
  by_hand | xargs awk '
    FNR == 1 {
      if (file && !found)
        print file ":1:"
      file = FILENAME
      found = 0
    }
    FNR <= 3 && /SPDX-License-Identifier: GPL-3.0-or-later/ { found = 1 }
    END { if (!found) print file ":1:" }' |
    fault "no SPDX-License-Identifier line on top"
}

# Tests may be somewhat longer: their cases are flat.
check_length() {
  code | xargs wc -l | awk '
    $2 != "total" && $1 > ($2 ~ /^tests\// ? 800 : 700) {
      print $2 ":" $1 ":"
    }' | fault "too long: more than one idea?"
}

# Bytes that continue a character do not count, tabs reach to the next eight.
check_width() {
  by_hand | LC_ALL=C xargs awk '
    {
      line = $0
      gsub(/[\200-\277]/, "", line)
      n = split(line, part, "\t")
      width = 0
      for (i = 1; i <= n; i++) {
        width += length(part[i])
        if (i < n)
          width += 8 - width % 8
      }
    }
    width > 80 { print FILENAME ":" FNR ":" $0 }' | fault "over 80 columns"
}

check_blanks() {
  {
    by_hand | xargs grep -nHE '[[:blank:]]+$'
    [ -z "$(by_hand | xargs tail -qc 1 | tr -d '\n')" ] ||
      by_hand | while read -r file; do
        [ -z "$(tail -c 1 "$file")" ] || echo "$file:"
      done
  } | fault "blanks at a line's end, or no newline at the file's"
}

# includes FOLDER-PATTERN FORBIDDEN
includes() {
  files "$1" | xargs -r grep -nHE "^#include \"($2)"
}

# tui -> backend -> engine, never back. Only the agent's half of backend may
# see more of engine/ than its words (base, hist, rng) and the arithmetic of
# limits.
check_layers() {
  {
    includes 'engine/**.[ch]' '(backend|tui|tests)/'
    includes 'backend/**.[ch]' '(tui|tests)/'
    includes 'backend/**.[ch]' 'engine/' |
      grep -vE '^backend/(agent|provider)/' |
      grep -vE '"engine/(base|hist|rng|vdisk/limit)\.h"'
    includes 'tui/**.[ch]' '(engine|tests)/' |
      grep -vE '"engine/(base|hist)\.h"'
    includes 'tui/**.[ch]' 'backend/(agent|provider)/'
  } | fault "includes what its layer must not know"
}

check_root() {
  files . | sed 's|/.*||' | sort -u | grep -vE '^\.' | grep -vxE \
    'CMakeLists\.txt|CMakePresets\.json|dev|LICENSE|[A-Z]+\.md' |
    grep -vxE 'tui|backend|engine|conf|tests|man|bench' |
    fault "has no place at the top level"
}

# The words are cut in two so that this file is not found.
check_words() {
  by_hand | xargs grep -nHwE 'TO''DO|FIX''ME|XX''X|place''holder|stub''bed?' |
    fault "unfinished work has no place here"
  files . | xargs grep -nHIE '/wo''rk/|/ro''ot/' |
    fault "a path of some machine"
}

check_format() {
  case $(clang-format --version 2>/dev/null) in
  *'version 14.'*) ;;
  *)
    echo "note: no clang-format 14 here, so the layout was not looked at"
    return
    ;;
  esac
  code | xargs clang-format --dry-run 2>&1 | grep 'warning:' |
    sed 's|: warning.*|:|' | fault "not laid out as ./dev fmt would"
}

# A source that no CMakeLists.txt names is built by nobody.
check_listed() {
  lists=$(files '*CMakeLists.txt' | xargs cat)
  files '*.c' | while read -r file; do
    stem=${file##*/}
    case $lists in
    *"${stem%.c}"*) ;;
    *) echo "$file:" ;;
    esac
  done | fault "named in no CMakeLists.txt"
}

# A README names the files of its folder, by their stem: the top one's, or the
# one beside them.
check_readme() {
  for folder in engine backend tui bench conf man; do
    [ -f "$folder/README.md" ] || echo "$folder/README.md:"
    files "$folder/**.[ch]" "$folder/**.sh" "$folder/**.conf" \
      "$folder/**.csv" "$folder/*.[1-8]"
  done | awk '
    function text(readme,   line) {
      if (!(readme in known)) {
        known[readme] = " "
        while ((getline line < readme) > 0)
          known[readme] = known[readme] line " "
        close(readme)
      }
      return known[readme]
    }
    {
      n = split($0, part, "/")
      name = part[n]
      sub(/\.[^.]*$/, "", name)
      gsub(/[.+]/, "\\\\&", name)
      word = "[^A-Za-z0-9_]" name "[^A-Za-z0-9_]"
      beside = substr($0, 1, length($0) - length(part[n])) "README.md"
      if (/:$/ || (text(part[1] "/README.md") !~ word && text(beside) !~ word))
        print $0 (/:$/ ? "" : ":")
    }' | fault "not in its folder's README.md"
}

for check in licence length width blanks layers root words format listed \
  readme; do
  "check_$check"
done
cat "$faults"
[ ! -s "$faults" ]
