#!/usr/bin/env bash
# finds.sh LRPC-STORM FAULT TEXT [UNLESS [OPTION ...]]: a storm with a fault in it fails, and says TEXT. It ends as soon
# as it has found it. Skipped where the storm says UNLESS, why it cannot look.
set -uo pipefail
options=(--minutes 1)
(($# > 4)) && options=("${@:5}")
output=$("$1" --fault "$2" "${options[@]}" --round 3 --clients 3 --servers 2 --seed 1 2>&1)
status=$?
directory=$(sed -n 's/.*Logs: \(.*\)/\1/p' <<<"$output")
[[ -n $directory ]] && rm -rf "$directory"
if [[ -n ${4:-} ]] && reason=$(grep -F -- "$4" <<<"$output"); then
  echo "skipped: $reason"
  exit 77
fi
if ((status != 1)) || ! grep -qF -- "$3" <<<"$output"; then
  echo "$output"
  echo "finds.sh: status $status (1), and somewhere: $3"
  exit 1
fi
grep -F "WRONG" <<<"$output"
