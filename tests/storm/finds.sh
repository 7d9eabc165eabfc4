#!/usr/bin/env bash
# finds.sh LRPC-STORM FAULT TEXT [UNLESS [OPTION ...]]: a storm with a fault in it fails, and says TEXT. It ends as soon
# as it has found it. Skipped where the storm says UNLESS, why it cannot look. The seed is another one each time, unless
# $LRPC_TEST_SEED says which.
set -uo pipefail
options=(--minutes 10)
(($# > 4)) && options=("${@:5}")
seed=${LRPC_TEST_SEED:-$RANDOM$RANDOM}
output=$("$1" --fault "$2" "${options[@]}" --round 1 --clients 3 --servers 2 --seed "$seed" 2>&1)
status=$?
echo "LRPC_TEST_SEED=$seed"
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
