#!/usr/bin/env bash
# finds.sh LRPC-STORM FAULT TEXT: a storm with a fault in it fails, and says TEXT. It ends as soon as it has found it.
set -uo pipefail
output=$("$1" --fault "$2" --minutes 1 --round 3 --clients 3 --servers 2 --seed 1 2>&1)
status=$?
directory=$(sed -n 's/.*Logs: \(.*\)/\1/p' <<<"$output")
[[ -n $directory ]] && rm -rf "$directory"
if ((status != 1)) || ! grep -qF -- "$3" <<<"$output"; then
  echo "$output"
  echo "finds.sh: status $status (1), and somewhere: $3"
  exit 1
fi
grep -F "WRONG" <<<"$output"
