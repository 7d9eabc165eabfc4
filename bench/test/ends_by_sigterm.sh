#!/usr/bin/env bash
# ends_by_sigterm.sh LRPC_BENCH: each table, told to end by SIGTERM while it measures, ends in order and leaves no process
# behind. Prints how long each took: less than a second on an idle machine. Fails if one takes longer than five seconds
# three times in a row.
set -uo pipefail
bench=$1
failed=0
told_to_end() { # told_to_end TABLE: 0: it has ended in order; 1: not; 2: in order, but late
  local session status told took left i
  setsid "$bench" "$1" >"table.$$" 2>&1 &
  session=$!
  sleep 1.5
  if ! grep -qs '^State:.[^Z]' "/proc/$session/status"; then
    wait "$session"
    printf '%s: status %d, done before\n' "$1" $?
    return 0
  fi
  told=$(date +%s%N)
  kill -TERM "$session"
  (exec >/dev/null 2>&1 && for ((i = 0; i < 600; ++i)); do kill -0 "$session" || exit; sleep 0.1; done &&
    kill -KILL "$session") &
  wait "$session"
  status=$?
  took=$((($(date +%s%N) - told) / 1000000))
  printf '%s: status %d after %d ms\n' "$1" "$status" "$took"
  for ((i = 0; i < 300; ++i)); do # what it has killed may take a moment to be gone
    left=$(ps -o pid=,stat=,args= -s "$session" | awk '$2 !~ /^Z/')
    [[ -n $left ]] || break
    sleep 0.1
  done
  if [[ -n $left ]]; then
    printf '%s leaves behind:\n%s\n' "$1" "$left"
    pkill -KILL -s "$session"
    return 1
  fi
  if [[ $status != 130 ]] && ! grep -q skipped "table.$$"; then # 130: interrupted; else it must say what it cannot do
    cat "table.$$"
    return 1
  fi
  ((took <= 5000)) || return 2
}

for table in default table3 table4 table5 bind instructions async figure2 matrix change scale death idle bpf layers loss \
  network paired remote components; do
  for attempt in 1 2 3; do # late once: the machine was busy
    told_to_end "$table"
    late=$?
    ((late == 2)) || break
  done
  ((late == 0)) || failed=1
done
rm -f "table.$$"
exit $failed
