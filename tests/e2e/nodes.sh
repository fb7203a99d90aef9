#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A cluster of four nodes, each an agent of its own on this machine: vDisks over
# their drives by NBD, a node that is killed while they are written, its return,
# a vDisk that moves, and what was written is there.
. "$SOURCE_DIR/tests/e2e/lab.sh"
conf=$HOME/.config/iodeck/iodeck.conf

nodes() {
  mkdir -p "$HOME/.config/iodeck"
  {
    echo 'cluster = { name = "lab"; absent_delay = "600s";'
    echo "  node = { nbd_ports = \"$1\"; };"
    echo '  domains = ('
    for n in 1 2 3 4; do
      mkdir -p "$HOME/d$n"
      [ $n = 1 ] || echo ','
      echo "{ name = \"n$n\"; node = { }; drives = ( { name = \"d0\";"
      echo "  path = \"~/d$n\"; size = \"256M\"; } ); }"
    done
    echo '); };'
  } >"$conf"
}

# state VDISK: as `vdisk show` says it.
state() {
  iodeck --json vdisk show "$1" 2>/dev/null | jq -r .state
}

is_state() {
  [ "$(state "$1")" = "$2" ]
}

agent_of() {
  pgrep -f -- "iodeck-agent daemon --name lab.$1 .*$HOME" | head -1
}

nodes 21000-21199
want 0 iodeck drive claim "$HOME/d1" node=n1
