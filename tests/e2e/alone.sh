# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh
# Sourced first by tests that make networks: the script is run again in
# namespaces of its own for network, mounts and processes, with an empty /run.
# So it meets no lab of this host and harms none, nothing outlives it, and what
# it leaves can be seen. In CI it may not be skipped.
PATH=$PATH:/usr/sbin:/sbin
if [ "${ALONE:-}" != yes ]; then
  lack=
  [ "$(id -u)" -eq 0 ] || lack="root"
  [ -n "$lack" ] || unshare -n -m -p -f --mount-proc true 2>/dev/null ||
    lack="leave to make namespaces"
  for tool in ip tc sshd ssh ssh-keygen jq setpriv; do
    [ -n "$lack" ] || command -v $tool >/dev/null || lack="$tool (./dev deps)"
  done
  case $lack,${CI:-} in
  ,*) ;;
  *,)
    echo "skipped: needs $lack"
    exit 77
    ;;
  *)
    echo "FAILED: needs $lack"
    exit 1
    ;;
  esac
  export ALONE=yes
  exec unshare -n -m -p -f --mount-proc --kill-child sh "$0" "$@"
fi
mount -t tmpfs -o mode=755 tmpfs /run || exit 1
mkdir /run/mount # umount(8) makes it
ip link set lo up
