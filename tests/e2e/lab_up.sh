#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The lab for rehearsal: made, used over ssh, cut, slowed, failed, healed and
# removed, with nothing left behind: what is there before and after is compared
# to the last name.
. "$SOURCE_DIR/tests/e2e/alone.sh"
. "$SOURCE_DIR/tests/e2e/lab.sh"
root=$HOME/labs

lab() {
  iodeck --set 'lab_dir=~/labs' lab "$@"
}

# Everything that a lab could leave, a name a line.
everything() {
  for comm in /proc/[0-9]*/comm; do
    cat "$comm" 2>/dev/null
  done | grep -vxE 'sh|cat|grep|sort|find|ip|sed|ps' | sort
  ip -o link | sed 's/^[0-9]*: //'
  ip -o addr
  ip route show table all
  cut -d' ' -f3- /proc/self/mountinfo
  find /run "$HOME" /var/lib/iodeck 2>/dev/null |
    grep -vxE "$HOME/(out|err|before|after|bytes)" | sort
}

# Nothing more than there was: right after a process has ended it may be seen.
same() {
  everything >"$HOME/after"
  cmp -s "$HOME/before" "$HOME/after"
}
nothing_left() {
  until_true 5 same && return
  diff "$HOME/before" "$HOME/after" | head -40
  die "$1 left something behind"
}
touch "$HOME/out" "$HOME/err" "$HOME/before" "$HOME/after"
everything >"$HOME/before"

patience=30
on() { # NODE COMMAND: over ssh
  ssh -F "$root/a/ssh_config" -o ConnectTimeout=$patience -o BatchMode=yes "$@"
}
silent() { # NODE: it is not to be reached
  patience=2
  on "$1" true 2>/dev/null
  status=$?
  patience=30
  [ "$status" -eq 255 ]
}
ms() { # COMMAND...: how long it takes
  from=$(date +%s%N)
  "$@" || return 1
  took=$((($(date +%s%N) - from) / 1000000))
}
# With its argument, of all processes that can be seen from here.
runs() {
  words=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n')
  printf '%s\n' "$words" | grep -qx "$1" # not at once: it would find itself
}
node_is() { # NODE JQ-CONDITION
  lab status name=a --json | jq -e --arg n "$1" \
    ".labs[0].nodes[] | select(.name == \$n) | $2" >/dev/null
}

# ---- what is refused, and changes nothing ----
want 2 lab up name=-x
want 2 lab up name=Lab
said err '"Lab" is no name of a lab'
want 2 lab up nodes=0
said err 'nodes: expected 1 to 64'
want 2 lab up nodes=65
want 2 lab up drives=17
want 2 lab up link=5
said err 'expected a rate from 64kbit to 100Gbit'
want 2 lab up net=8.8.8.0/24
said err 'expected a private range'
want 2 lab up name=-n3
want 2 iodeck --set lab_dir="$HOME/a b" lab up
said err 'expected an absolute path'
want 1 lab cut n1
said err 'there is no lab lab: make one with'
want 0 lab status
said out 'no lab in'
want 0 lab down
said out 'there is no lab lab: nothing to do'
nothing_left "a refusal"

# ---- up ----
want 0 lab up --name a --nodes 3 --link=10gbit drives=2 size=64M
said out '3 nodes, console at 10\.213\.0\.1'
[ "$(ip netns | wc -l)" -eq 4 ] || die "four namespaces expected"
want 1 lab up name=a
said err 'already'
want 1 iodeck --set lab_dir="$HOME/others" lab up name=a
said err 'of a lab in another lab_dir'
for n in 1 2 3; do
  [ "$(on n$n hostname </dev/null)" = "n$n" ] || die "n$n does not answer"
  on n$n 'test -d '"$root/a/n$n/d1"' && ! test -e '"$root/a/n1$n" ||
    die "n$n: its drives"
done
# Nodes reach one another by name, and see neither files nor processes of
# others.
on n1 'bash -c "exec 3<>/dev/tcp/n2/22 && head -c 4 <&3"' | grep -q SSH- ||
  die "n1 does not reach n2"
on n1 'echo mine >~/file; echo mine >/tmp/file' || die "n1: no home"
on n2 'test ! -e ~/file && test ! -e /tmp/file' || die "n2 sees n1's home"
on n2 "test ! -e $root/a/n1" || die "n2 sees n1's drives"
on n1 'test "$(ls -d /proc/[0-9]* | wc -l)" -lt 20' ||
  die "n1 sees the host's processes"
# A host key that is not the lab's is refused.
sed -i.was 's/^n1,.*ssh-ed25519 /&AAAA/' "$root/a/known_hosts"
! on n1 true 2>/dev/null || die "another host key was taken"
mv "$root/a/known_hosts.was" "$root/a/known_hosts"

# ---- cut and heal: what runs there runs on ----
on n2 'sleep 4711 >/dev/null 2>&1 </dev/null &'
want 0 lab cut n2 name=a
silent n2 || die "n2 is cut off and answers"
on n1 true || die "n1 was not cut off"
node_is n2 '.state == "up" and .link == "cut" and .processes > 1' ||
  die "status does not say that n2 is cut off"
want 0 lab heal n2 name=a
on n2 true || die "n2 is healed and does not answer"
on n2 'cat /proc/[0-9]*/cmdline' 2>/dev/null | tr '\0' '\n' |
  grep -qx 4711 || die "the cut ended a process"

# ---- slow, both ways: no faster than the rate, and slower than before ----
head -c 1048576 /dev/urandom >"$HOME/bytes"
up() {
  on n1 'cat >/dev/null' <"$HOME/bytes"
}
down() {
  on n1 'head -c 1048576 /dev/urandom' >/dev/null
}
faster() {
  ms "$1" && [ "$took" -lt "$slow" ]
}
for way in up down; do
  want 0 lab slow n1 4mbit name=a
  ms $way || die "$way: no bytes"
  slow=$took
  [ "$slow" -gt 1900 ] ||
    die "$way: 8.4 Mbit at 4 Mbit/s took only $slow ms"
  node_is n1 '.rate_bytes_s == 500000' || die "status does not say the rate"
  want 0 lab heal n1 name=a
  until_true 5 faster $way || die "$way: as slow after heal, $took ms"
  echo "$way: 1 MiB at 4 Mbit/s $slow ms, at 10 Gbit/s $took ms"
done
want 2 lab slow n1 fast name=a
want 0 lab slow '*' 1gbit name=a
node_is n3 '.rate_bytes_s == 125000000' || die "not all are slowed"
want 0 lab heal '*' name=a

# ---- fail: all that ran is gone; heal starts it again ----
on n3 'setsid sleep 4712 >/dev/null 2>&1 </dev/null &'
on n3 'echo kept >~/file'
runs 4712 || die "no process to be killed"
want 0 lab fail n3 name=a
! runs 4712 || die "a process of n3 lives on"
silent n3 || die "n3 has failed and answers"
node_is n3 '.state == "failed" and .link == "cut" and .processes == 0' ||
  die "status does not say that n3 has failed"
want 0 lab fail n3 name=a
want 0 lab heal n3 name=a
[ "$(on n3 'cat ~/file')" = kept ] || die "n3 is healed and has lost a file"
want 2 lab fail -x name=a
want 2 lab fail n4 name=a
said err 'n1 to n3'

# ---- a second lab, and a shell inside one ----
want 0 lab up name=b nodes=1
said out 'console at 10\.213\.1\.1'
want 1 ip netns exec iodeck-b-n1 "$BIN_DIR/iodeck" \
  --set lab_dir="$root" lab down name=b
said err 'leave that shell first'
want 0 lab down name=b
on n1 true || die "the end of b has hurt a"

# ---- down ----
want 0 lab down name=a
nothing_left "down"

# ---- a name of a lab's that stands for the host's own network ----
sleep 4713 &
other=$!
mkdir /run/netns
touch /run/netns/iodeck-a-n1
mount --bind /proc/self/ns/net /run/netns/iodeck-a-n1
want 1 lab down name=a
said err "the host's own network"
want 1 lab up name=a
kill $other || die "down has killed what is none of a lab's"
umount /run/netns/iodeck-a-n1
rm -r /run/netns
nothing_left "a name of another's"

# ---- what a restart of the host leaves, and a torn state file ----
want 0 lab up name=a nodes=2
for ns in n1 n2 switch; do
  ip netns pids iodeck-a-$ns | xargs -r kill -9
done
for ns in n1 n2 switch; do
  ip netns del iodeck-a-$ns
done
want 0 lab status
said out 'gone'
want 1 lab heal n1 name=a
said err 'is not whole'
want 1 lab up name=a
head -c 100 "$root/a/state.json" >"$root/a/torn"
mv "$root/a/torn" "$root/a/state.json"
want 1 lab status
said err 'cannot be read'
want 0 lab down name=a
rmdir "$root" /run/netns 2>/dev/null ||
  { umount /run/netns && rmdir /run/netns; }
nothing_left "down after a restart"

# ---- killed half way: down clears it; ended by a signal: it does itself ----
for delay in 0.05 0.2 0.4 0.6 0.9; do
  iodeck --set lab_dir="$root" lab up name=a nodes=6 >/dev/null 2>&1 &
  sleep $delay
  kill -9 $! 2>/dev/null
  wait $!
  want 0 lab down name=a
  # What a torn state file could not say, down does not know.
  umount /run/netns 2>/dev/null && rmdir /run/netns
  rmdir "$root" 2>/dev/null
  nothing_left "an up killed after $delay s"
done
for delay in 0.2 0.8; do
  iodeck --set lab_dir="$root" lab up name=a nodes=16 >/dev/null 2>&1 &
  sleep $delay
  kill -TERM $!
  wait $!
  nothing_left "an up ended after $delay s"
done

# ---- what a host may lack ----
mkdir /run/other && chmod 755 /run/other
cp "$BIN_DIR/iodeck" /run/other
want 1 setpriv --reuid 65534 --regid 65534 --clear-groups \
  env HOME=/run/other /run/other/iodeck lab up
said err 'only root makes and changes labs: sudo iodeck lab up'
mkdir -m 700 /run/labs
want 1 setpriv --reuid 65534 --regid 65534 --clear-groups \
  env HOME=/run/other /run/other/iodeck --set lab_dir=/run/labs lab status
said err 'only root sees labs'
rm -r /run/other /run/labs
want 1 setpriv --bounding-set -sys_admin "$BIN_DIR/iodeck" \
  --set lab_dir="$root" lab up
said err 'root with leave to make namespaces'
umount /run/netns 2>/dev/null
rmdir /run/netns 2>/dev/null
nothing_left "an up without leave"

sshd=$(readlink -f "$(command -v sshd)")
mount --bind /dev/null "$sshd"
want 1 lab up
said err 'install the package openssh-server'
umount "$sshd"
printf '#!/bin/sh\nexit 1\n' >"$HOME/sshd"
chmod 755 "$HOME/sshd"
mount --bind "$HOME/sshd" "$sshd"
want 1 lab up
said err 'n1: its sshd ended'
umount "$sshd"
rm "$HOME/sshd"

ip addr add 10.9.8.7/24 dev lo
want 1 lab up net=10.9.8.0/24
said err 'has a route there already'
ip addr del 10.9.8.7/24 dev lo
mkdir "$root"
mount -t tmpfs -o size=48k,mode=700 tmpfs "$root"
want 1 lab up
said err 'No space left on device'
said err 'make room there'
umount "$root"
chmod 777 "$root"
want 1 lab up
said err 'nobody else may write in'
rmdir "$root"
nothing_left "an up that failed"
echo "the lab holds"
