#!/usr/bin/env bash
# ends_by_sigterm.sh LRPC_BENCH: each table, told to end by SIGTERM while it measures, ends in order and leaves no
# process behind. Prints how long each took: less than a second on an idle machine. Fails if one takes longer than five
# seconds three times in a row. Exit 77: cannot run here.
set -uo pipefail
command -v ps >/dev/null && command -v pkill >/dev/null || { echo "SKIPPED: neither ps nor pkill"; exit 77; }
bench=$1 session= failed=0
said=$(mktemp)
trap '[[ -z $session ]] || pkill -KILL -s "$session"; rm -f "$said"' EXIT

hears() { # whether the bench has its handler of SIGTERM (15)
  local caught
  caught=$(sed -n 's/^SigCgt:.//p' "/proc/$session/status" 2>/dev/null)
  [[ -n $caught ]] && ((0x$caught & 1 << 14))
}

told_to_end() { # told_to_end TABLE: 0: it has ended in order; 1: not; 2: in order, but late
  local status told took left i
  setsid "$bench" "$1" >"$said" 2>&1 &
  session=$!
  until hears || ! kill -0 "$session" 2>/dev/null; do sleep 0.1; done
  sleep 1
  told=$(date +%s%N)
  kill -TERM "$session" 2>/dev/null
  (exec >/dev/null 2>&1 && for ((i = 0; i < 300; ++i)); do kill -0 "$session" || exit; sleep 0.1; done &&
    kill -KILL "$session") &
  wait "$session"
  status=$?
  took=$((($(date +%s%N) - told) / 1000000))
  printf '%s: status %d after %d ms\n' "$1" "$status" "$took"
  for ((i = 0; i < 2400; ++i)); do # what it has killed may take a moment to be gone
    left=$(ps -o pid=,stat=,args= -s "$session" | awk '$2 !~ /^Z/')
    [[ -n $left ]] || break
    sleep 0.1
  done
  if [[ -n $left ]]; then
    printf '%s leaves behind:\n%s\n' "$1" "$left"
    pkill -KILL -s "$session"
    return 1
  fi
  # 130: interrupted; 0: it was done before; 1: it says what it cannot do here.
  if ! { [[ $status == 130 || $status == 0 ]] || { [[ $status == 1 ]] && grep -q skipped "$said"; }; }; then
    cat "$said"
    return 1
  fi
  ((took <= 5000)) || return 2
}

# All that its help names, but for `all`.
mapfile -t tables < <("$bench" --help | tr -d ' \n' | sed 's/.*{\(default,[^}]*\),all}.*/\1/' | tr , '\n')
((${#tables[@]} > 20)) || { "$bench" --help; exit 1; }
for table in "${tables[@]}"; do
  for attempt in 1 2 3; do # late once: the machine was busy
    told_to_end "$table"
    outcome=$?
    ((outcome == 2)) || break
  done
  ((outcome == 0)) || failed=1
done
session=
exit $failed
