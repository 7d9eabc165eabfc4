#!/usr/bin/env bash
# hosts.sh remove ends also what ignores SIGTERM, as an interactive shell does. The test has a /run of its own, where no
# other hosts are. Exit 0: it does, 1: it does not, 77: cannot run here (says why).
set -euo pipefail
skip() { echo "SKIPPED: $1"; exit 77; }
if [[ ${1:-} != inside ]]; then
  command -v ip >/dev/null || skip "ip (iproute2) is not installed"
  unshare --mount true 2>/dev/null || skip "no mount namespace can be made here"
  exec unshare --mount "$0" inside
fi
mount -t tmpfs none /run 2>/dev/null || skip "nothing can be mounted here"
trap 'ip netns delete probe 2>/dev/null || true' EXIT
ip netns add probe && ip netns exec probe true || skip "no network namespace can be made here"
ip -n probe link add bridge type bridge && ip -n probe link add eth0 type veth ||
  skip "no bridge or veth can be made here"

hosts=$(dirname "$0")/hosts.sh
"$hosts" make 1 2 || { echo "make failed"; exit 1; }
"$hosts" on 1 bash -c 'trap "" TERM; touch ~/ready; exec sleep 60' &
stubborn=$!
until [[ -e /run/lrpc-hosts/1/ready ]]; do
  kill -0 "$stubborn" || { echo "nothing runs on a host"; exit 1; }
  sleep 0.02
done
"$hosts" remove || { echo "remove failed"; exit 1; }
status=0
wait "$stubborn" || status=$?
((status == 128 + 9)) || { echo "it ended with status $status"; exit 1; }
[[ ! -e /run/lrpc-hosts && $(ip netns list) != *lrpc-hosts* ]] || { echo "a host was left"; exit 1; }
