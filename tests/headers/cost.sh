#!/usr/bin/env bash
# cost.sh [--lines] PREFIX...: what each header that users include costs to compile, against the standard headers that
# it includes itself or by other headers of ours. A PREFIX is a folder with an include/: one to which lrpc is installed,
# or a folder of the sources. The compiler is $CXX, else c++.
#
# The lines are those that are left after preprocessing, and exact. The seconds are the median of user time, of $RUNS
# compilations (9). Fails if a header costs more than twice as much by either measure, or includes one of `forbidden`.
# With --lines it compiles nothing: then the clock decides nothing.
set -euo pipefail
headers='lrpc/client.h lrpc/server.h lrpc/nameserver.h lrpc/sealed.h lrpc/sandbox.h lrpc/raw_binding.h'
forbidden='x86intrin.h immintrin.h arm_neon.h iostream regex'
most=2
timed=1
[[ ${1:-} != --lines ]] || { timed=; shift; }
(($# > 0)) || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
include=()
for prefix; do include+=("-I$prefix/include"); done
compiler=("${CXX:-c++}" -std=c++20 "${include[@]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()

lines() { "${compiler[@]}" -E -P "$1" | wc -l; }

seconds() ( # seconds FILE: user time of the preprocessor and the compiler
  TIMEFORMAT=%U
  { time "${compiler[@]}" -S -o /dev/null "$1" 2>/dev/null; } 2>&1
)

median() { sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

compare() { # compare HEADER UNIT WHOLE STANDARD
  local times
  times=$(ratio "$3" "$4")
  printf ' %9s %9s %6s' "$3" "$4" "$times"
  awk -v times="$times" -v most=$most 'BEGIN { exit !(times <= most) }' || failed+=("$1 costs $times times the $2")
}

printf '%-20s %5s %6s %9s %9s %6s' header files ours lines standard ratio
[[ -z $timed ]] || printf ' %9s %9s %6s' seconds standard ratio
echo
for header in $headers; do
  whole=$work/whole.cpp standard=$work/standard.cpp
  echo "#include <$header>" >"$whole"
  "${compiler[@]}" -M "$whole" | sed 's/^[^:]*://; s/\\$//' | tr -s ' ' '\n' | grep -v '^$' >"$work/read"
  grep -F "$(printf '%s/include/lrpc/\n' "$@")" "$work/read" >"$work/ours"
  xargs cat <"$work/ours" | grep -E '^#include <' | sort -u >"$standard"
  printf '%-20s %5d %6d' "$header" "$(wc -l <"$work/ours")" "$(xargs cat <"$work/ours" | wc -l)"
  compare "$header" 'lines of its standard headers' "$(lines "$whole")" "$(lines "$standard")"
  if [[ -n $timed ]]; then
    for ((i = 0; i < ${RUNS:-9}; ++i)); do # in turn, so that what disturbs the one disturbs the other
      seconds "$whole" >>"$work/whole.seconds"
      seconds "$standard" >>"$work/standard.seconds"
    done
    compare "$header" 'time of its standard headers' "$(median <"$work/whole.seconds")" \
      "$(median <"$work/standard.seconds")"
    rm "$work"/*.seconds
  fi
  echo
  for name in $forbidden; do
    ! grep -qE "(^|/)$name\$" "$work/read" || failed+=("$header includes $name")
  done
done
((${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "${failed[@]}"; exit 1; }
