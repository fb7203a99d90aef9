#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The console in tmux, a real terminal with a real TERM: screens, the prompt,
# leaving. smoke_tmux.sh CONSOLE. Skips (77) without tmux.
set -eu
console=$1
command -v tmux >/dev/null || { echo "skip: no tmux"; exit 77; }
dir=$(mktemp -d /tmp/iodeck-smoke.XXXXXX)
mux() { tmux -S "$dir/tmux" -f /dev/null "$@"; }
trap 'mux kill-server 2>/dev/null || :; rm -rf "$dir"' EXIT

# Waits until the screen shows a text.
expect() {
	for _ in $(seq 100); do
		mux capture-pane -p >"$dir/screen" 2>/dev/null || :
		if grep -qF -- "$1" "$dir/screen"; then return 0; fi
		sleep 0.1
	done
	echo "not shown: $1"
	cat "$dir/screen"
	exit 1
}

env -u COLORTERM HOME="$dir" XDG_STATE_HOME="$dir" LC_ALL=C.UTF-8 \
	tmux -S "$dir/tmux" -f /dev/null new-session -d -x 80 -y 24 \
	"'$console' 200 50 >'$dir/out'; echo status \$?; sleep 60"
expect "service time"
mux send-keys 1
expect "drives of n1"
mux send-keys 2
expect "may lose"
mux send-keys F1
expect "iodeck-policy(7)"
mux send-keys Escape
expect "may lose"
mux send-keys 4
expect "service time"
mux send-keys : "sp" Tab
mux send-keys Escape
mux send-keys :
mux send-keys -l "speed 4"
mux send-keys Enter
mux send-keys q
expect "Leave the console?"
mux send-keys y
expect "status 0"
grep -qx "speed 4" "$dir/out"
echo ok
