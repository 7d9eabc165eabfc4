#!/usr/bin/env bash
# Hosts for the guide's examples on one machine: each is a network namespace, and all are on one Ethernet. As root.
#
#   hosts.sh make NUMBER...         makes hosts; NUMBER (1 to 254) is the end of a host's address, 10.0.0.NUMBER
#   hosts.sh on NUMBER COMMAND...   runs a command on a host: in a home of its own, with an lrpcd socket of its own
#   hosts.sh remove                 ends what runs on the hosts, and removes them with their homes
set -euo pipefail

homes=/run/lrpc-hosts # homes/NUMBER is a host's
wire=lrpc-hosts                  # the namespace whose bridge joins the hosts

made() { ip netns list | awk -v wire="$wire" '$1 == wire || $1 ~ "^" wire "-[0-9]+$" { print $1 }'; }

make() {
  [[ -z $(made) ]] || { echo "hosts.sh: there are hosts already: hosts.sh remove" >&2; exit 1; }
  ip netns add "$wire"
  ip -n "$wire" link add bridge type bridge
  ip -n "$wire" link set bridge up
  local number host
  for number; do
    host=$wire-$number
    ip netns add "$host"
    # Each end of the pair has an index of its own: the kernel would take two of the same index for one link.
    ip -n "$host" link add eth0 index "$((1000 + number))" type veth peer name "port$number" netns "$wire"
    ip -n "$wire" link set "port$number" master bridge up
    ip -n "$host" address add "10.0.0.$number/24" dev eth0
    ip -n "$host" link set eth0 up
    ip -n "$host" link set lo up
    mkdir -p "$homes/$number"
  done
}

on() {
  local home=$homes/$1
  cd "$home"
  exec ip netns exec "$wire-$1" env HOME="$home" LRPC_SOCKET="$home/lrpcd.sock" "${@:2}"
}

send() { # send SIGNAL: to all that runs on the hosts; what has ended by itself meanwhile is no error
  local host process
  for host in $(made); do
    for process in $(ip netns pids "$host"); do kill -s "$1" "$process" 2>/dev/null || true; done
  done
}

remove() {
  send TERM
  sleep 1
  send KILL # An interactive shell ignores SIGTERM.
  local host
  for host in $(made); do ip netns delete "$host"; done
  rm -rf "$homes"
}

case ${1:-} in
  make | on | remove) "$@" ;;
  *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" | grep -v '^set ' && exit 2 ;;
esac
