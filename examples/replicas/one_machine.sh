#!/usr/bin/env bash
# The replicated store on one machine: three members and a client, each a host of its own (../hosts.sh). As root, with
# lrpc's programs in PATH. It shows that the store goes on when a member dies, and ends when you press a key.
set -euo pipefail
hosts=$(realpath "$(dirname "$0")")/../hosts.sh

graph() { # graph NUMBER: the same for everybody but for the address
  cat <<END
udp      = UDP(address = "10.0.0.$1");
auth     = AUTH(keys = "lrpc-keys") over udp;
channel  = CHANNEL(give_up = 30s, reply_life = 40s) over auth;
select   = SELECT over channel;
majority = COMPOSITE { GRPC; SYNC; MAJORITY; STILL_WORKING; NUMBER; UNIQUE; ACK; MEMBERSHIP; } over auth;
many     = SELECT(number = 240) over majority;
replicas = GROUP(members = [10.0.0.1, 10.0.0.2, 10.0.0.3]) over many;
END
}

start() { # start NUMBER LOG PROGRAM...: in the background, on a host
  "$hosts" on "$1" "${@:3}" >"/run/lrpc-hosts/$1/$2.log" 2>&1 &
}

client() {
  printf '%s\n' "$ $*"
  "$hosts" on 9 "$@"
}

"$hosts" make 1 2 3 9
trap '"$hosts" remove' EXIT
key=$(lrpc-netd --generate-key)
for number in 1 2 3 9; do
  graph "$number" >"/run/lrpc-hosts/$number/graph"
  (umask 077; echo "10.0.0.0/24 $key" >"/run/lrpc-hosts/$number/lrpc-keys")
  start "$number" lrpcd lrpcd
done
sleep 1 # until they listen
for number in 1 2 3; do
  mkdir "/run/lrpc-hosts/$number/state"
  start "$number" replica lrpc-replica state
  start "$number" netd lrpc-netd --graph graph --export store --export counter
  members[number]=$!
done
start 9 netd lrpc-netd --graph graph
sleep 2

client lrpc-replicas put colour blue
client lrpc-replicas get colour
client lrpc-replicas add 5
echo '--- the network domain of 10.0.0.3 dies'
kill -KILL "${members[3]}"
client lrpc-replicas put colour green
client lrpc-replicas get colour
client lrpc-replicas count
[[ ! -t 0 ]] || read -rsn 1 -p "The hosts are there until you press a key: $hosts on 9 lrpc-replicas get colour"
echo
