#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# vDisks and drives of a small lab from the command line: a change of policy
# that is waited for, and drives that go back only once nobody uses them.
. "$SOURCE_DIR/tests/e2e/lab.sh"
command -v jq >/dev/null || {
  echo "skipped: needs jq"
  exit 77
}
cluster
sed -i 's/raid = 1; ftt = 1;/& layout = "inplace";/' \
  "$HOME/.config/iodeck/iodeck.conf"

# ---- waiting for a migration ----
want 0 iodeck vdisk set db1 raid=5 --wait
said out 'db1 changed; 1 vDisk moved'
want 0 iodeck --json vdisk show db1
jq -e '.raid == 5 and .state == "healthy"' "$HOME/out" >/dev/null ||
  die "the wait was over before the move: $(cat "$HOME/out")"
want 0 iodeck vdisk set db1 raid=5 --wait
said out 'is so already'
want 0 iodeck vdisk set db1 policy=mirror --wait
want 0 iodeck policy set mirror raid=5 --wait
said out 'mirror changed; 1 vDisk moved'
want 0 iodeck --json vdisk show db1
jq -e '.raid == 5 and .policy == "mirror"' "$HOME/out" >/dev/null ||
  die "the policy was not reached: $(cat "$HOME/out")"
want 0 iodeck policy set mirror raid=5 --wait
said out 'no vDisk has to move'
want 1 iodeck vdisk set db1 raid=6 --wait
want 1 iodeck vdisk set nothing raid=1 --wait

# ---- exported: said where, and ended ----
if command -v nbdkit >/dev/null && [ -e "$BIN_DIR/nbdkit-iodeck-plugin.so" ]
then
  want 0 iodeck vdisk export db1 --read-only
  said out 'db1 is exported: nbd+unix:///?socket=/'
  want 0 iodeck vdisk show db1
  said out 'exported, to be read, at nbd+unix'
  want 1 iodeck vdisk export db1
  said err 'vdisk unexport db1'
  want 0 iodeck vdisk unexport db1
  want 0 iodeck --json vdisk show db1
  jq -e 'has("export") | not' "$HOME/out" >/dev/null ||
    die "it is still exported: $(cat "$HOME/out")"
fi

# ---- a drive of the open cluster stays ----
marker=$HOME/d4/iodeck-drive
[ -e "$marker" ] || die "no marker in a drive that is claimed"
for force in '' --force; do
  # shellcheck disable=SC2086 # nothing, or one word
  want 1 iodeck drive release "$HOME/d4" $force
  said err 'drive n4:d0 of cluster lab, which is open'
done
[ -e "$marker" ] || die "a drive in use was released"
ln -s "$HOME/d4" "$HOME/by-another-name"
want 1 iodeck drive release "$HOME/by-another-name"

# ---- as the refusal says ----
want 0 iodeck vdisk delete db1
want 0 iodeck agent stop
cat >"$HOME/.config/iodeck/iodeck.conf" <<EOF
cluster = { name = "lab"; domains = (
  { name = "n1"; drives = ( { name = "d0"; path = "~/d1"; size = "64M"; } ); },
  { name = "n2"; drives = ( { name = "d0"; path = "~/d2"; size = "64M"; } ); }
); };
EOF
until_true 10 iodeck drive release "$HOME/d4" ||
  die "not released: $(iodeck drive release "$HOME/d4" 2>&1)"
[ ! -e "$marker" ] || die "released, and the marker is there"
want 0 iodeck node list
[ ! -e "$marker" ] || die "claimed again"
echo "moves are waited for, drives go back"
