#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The command line without an agent: exit status, messages, JSON, completion,
# and the comparison of published curves against the authors' own readings.
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null || {
  echo "skipped: needs jq"
  exit 77
}

# ---- usage ----
want 0 iodeck --version
said out '^iodeck [0-9]'
want 0 iodeck --help
said out 'vdisk create'
want 0 iodeck run --help
said out 'usage: iodeck run SUITE'
want 2 iodeck
said err 'no terminal'
want 2 iodeck --frobnicate
said err 'unknown option: --frobnicate'
want 2 iodeck dance
said err 'unknown command "dance"'
want 0 iodeck vdisk --help
said out 'vdisk create NAME size=bytes'
said out 'vdisk delete NAME'
want 0 iodeck help drive
said out 'drive probe'
want 2 iodeck vdisk
said err '"vdisk" is a group of commands; `help vdisk` lists'
want 2 iodeck vdisk dance
said err '"vdisk" has no command "dance"'
want 2 iodeck run
said err 'SUITE is missing'
want 2 iodeck run smoke speed=3 wide
said err 'unexpected "speed=3"'
want 2 iodeck run smoke --seconds never
said err 'seconds: "never": expected a time'
want 2 iodeck vdisk create a size=12Q
said err 'expected a size'
want 2 iodeck vdisk create a size=1G raid=4
said err 'expected 0|1|5|6'
want 2 iodeck run smoke seconds=1 seconds=2
said err 'given twice'
want 2 iodeck note hello
want 2 iodeck show
want 2 iodeck show /nonexistent
want 2 iodeck --config
want 2 iodeck --config /nonexistent/x.conf suite list
said err '/nonexistent/x.conf'
want 2 iodeck --set bound_us=0 suite list
said err 'bound_us: expected'
want 2 iodeck --set nope=0 suite list

# ---- configuration ----
mkdir -p "$HOME/.config/iodeck"
printf 'bound_us = 500;\nclutser = { };\n' >"$HOME/.config/iodeck/iodeck.conf"
want 2 iodeck suite list
said err 'iodeck.conf:2: unknown setting "clutser"'
rm "$HOME/.config/iodeck/iodeck.conf"
want 1 iodeck vdisk list
said err 'no cluster is configured'
want 0 iodeck --config "$SOURCE_DIR/conf/iodeck.conf" run oltp32k-curve --plan
said out 'points write'
said out '% of the drives'

# ---- what is on the shelf ----
want 0 iodeck suite list --json
jq -e '.suites | length >= 7' "$HOME/out" >/dev/null || die "suites"
want 0 iodeck workload list --json
jq -e '.workloads | map(.name) | contains(["oltp4k","rdbms22k","rw512k"])' \
  "$HOME/out" >/dev/null || die "workloads"
want 0 iodeck workload show rdbms22k --json
want 2 iodeck workload show nothing
want 2 iodeck run smoke --plan
said err 'vdisk=NAME'
want 0 iodeck run smoke vdisk=x --plan --json
jq -e '.plan.phases[0].kind == "max" and .cost.points == 5' "$HOME/out" \
  >/dev/null || die "plan"
want 0 iodeck run smoke vdisk=x mode=ramp outstanding=1,2,3 --plan --json
jq -e '[.plan.phases[] | select(.kind == "ramp")] | length == 6' "$HOME/out" \
  >/dev/null || die "ramp"
for suite in $(iodeck suite list --json | jq -r '.suites[].name'); do
  want 0 iodeck suite show "$suite" vdisk=x
done
want 0 iodeck session list --json
jq -e '.sessions == []' "$HOME/out" >/dev/null || die "sessions"

# ---- JSON even where it fails ----
want 2 iodeck compare nothing.csv#a nothing.csv#b --json
jq -e '.status == 2 and (.error | test("nothing.csv"))' "$HOME/out" \
  >/dev/null || die "error document"

# ---- comparison against the published readings ----
csv=$SOURCE_DIR/conf/published/curves.csv
readings=$SOURCE_DIR/tests/data/readings.csv
[ -f "$readings" ] || readings=$SOURCE_DIR/conf/published/readings.csv
for load in 'OLTP 32K' 'RDBMS 22K'; do
  want 0 iodeck compare "$csv#$load RAID6 25GbE" "$csv#$load RAID6 100GbE" \
    --json
  jq -e . "$HOME/out" >/dev/null || die "not one JSON document"
  grep "^dell-esa,$load," "$readings" >"$HOME/rows"
  rows=0
  while IFS=, read -r _ _ name _ _ change; do
    case $name in
    'peak IOPS') pick='peak IOPS' ;;
    'latency at peak (ms)') pick='latency at peak' ;;
    'IOPS at 70 %') pick='IOPS at 70 %' ;;
    'latency at 70 % (ms)') pick='latency at 70 %' ;;
    'IOPS at 80 %') pick='IOPS at 80 %' ;;
    'latency at 80 % (ms)') pick='latency at 80 %' ;;
    *) die "a reading not known here: $name" ;;
    esac
    jq -e --arg name "$pick" --argjson want "$change" '
      .readings[] | select((.name | ascii_downcase) | startswith($name
        | ascii_downcase)) | (.change_percent - $want) | fabs <= 1' \
      "$HOME/out" >/dev/null ||
      die "$load, $name: not within a point of $change"
    rows=$((rows + 1))
  done <"$HOME/rows"
  [ "$rows" -eq 6 ] || die "six readings of $load expected, $rows found"
done
want 2 iodeck compare "$csv#nope" "$csv#RDBMS 22K RAID6 25GbE"
said err 'nope'
want 2 iodeck compare "$csv" "$csv"
cp "$csv" "$HOME/other.csv"
want 0 iodeck compare "$csv#RDBMS 22K RAID6 25GbE" \
  "$HOME/other.csv#RDBMS 22K RAID6 25GbE"
said out 'a  curves.csv#RDBMS 22K'
said out 'b  other.csv#RDBMS 22K'

# ---- completion ----
want 0 iodeck completion words -- 'iodeck v'
said out '^vdisk$'
want 0 iodeck completion words -- 'iodeck vdisk c'
said out '^create$'
want 0 iodeck completion words -- 'iodeck run sm'
said out '^smoke$'
want 0 iodeck completion words -- 'iodeck run smoke mode='
said out '^mode=ramp$'
want 2 iodeck completion csh
for shell in bash zsh; do
  command -v $shell >/dev/null || continue
  iodeck completion $shell >"$HOME/completion"
  $shell -n "$HOME/completion" || die "$shell does not take its completion"
done
command -v bash >/dev/null && {
  answer=$(bash -c 'eval "$(iodeck completion bash)"
    COMP_LINE="iodeck run smoke mode=r" COMP_POINT=23
    COMP_WORDS=(iodeck run smoke mode = r) COMP_CWORD=5
    compopt() { :; }
    _iodeck; printf "%s\n" "${COMPREPLY[@]}"')
  [ "$answer" = ramp ] || die "bash completion answered \"$answer\""
}
echo "the command line holds"
