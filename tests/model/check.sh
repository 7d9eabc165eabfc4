#!/usr/bin/env bash
# Checks the model of the call word with spin: every configuration must be free of errors, and every variant with one rule
# taken away (BROKEN_...) must be found faulty, so that we know that the model can fail.
#
#   check.sh [MODEL]      exit 0: as expected, 1: not, 77: cannot run here (says why)
#
# Takes about two minutes on two processors and at most 0.8 GB for each of them. JOBS=n runs n checks at a time. DEEP=1 adds
# the larger configurations (ten minutes more, 2 GB each).
set -euo pipefail

model=$(realpath "${1:-$(dirname "$0")/call_word.pml}")
for tool in spin "${CC:-cc}"; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: $tool is not installed"
    exit 77
  fi
done

# expectation  kind  definitions
#   kind `end`: assertions and end states.   kind `cycle`: no run goes on for ever (see the head of the model).
checks='
right  end    CALLS=2 POLLERS=1 DETACHES=1 DEADLINES=0
right  end    CALLS=2 POLLERS=1 LEAVES=1 DETACHES=0
right  end    CALLS=2 POLLERS=1 DETACHES=0 FATE=1 DEADLINES=0
right  end    CALLS=2 POLLERS=1 DETACHES=0 FATE=2 DEADLINES=0
right  end    CALLS=1 POLLERS=1 DETACHES=0 FATE=3
right  end    CALLS=2 POLLERS=2 DETACHES=0 DEADLINES=0
right  end    CALLS=3 POLLERS=1 DETACHES=0
right  end    CALLS=2 POLLERS=0 DETACHES=2
right  end    CALLS=2 POLLERS=0 DETACHES=0 FATE=1
right  end    CALLS=2 POLLERS=0 DETACHES=1 FATE=2 DEADLINES=0
right  end    CALLS=2 POLLERS=0 DETACHES=0 FATE=3
right  cycle  CALLS=2 POLLERS=1 DETACHES=0
right  cycle  CALLS=2 POLLERS=0 DETACHES=1
right  cycle  CALLS=2 POLLERS=0 DETACHES=0 FATE=1
right  cycle  CALLS=2 POLLERS=0 DETACHES=0 FATE=3 DEADLINES=0
faulty end    DETACHES=0 BROKEN_PLAIN_STORE_RETURN
faulty end    DETACHES=0 BROKEN_NO_CLAIM
faulty end    DETACHES=0 BROKEN_SHARED_BITSET
faulty end    DETACHES=0 BROKEN_RETURN_BEFORE_RELEASE
faulty end    DETACHES=0 BROKEN_RETURN_FORGETS_ESTACK
faulty end    DETACHES=0 BROKEN_LINKAGE_BEFORE_WORD
faulty end    DETACHES=0 BROKEN_SCAN_CALLED_ONLY
faulty end    DETACHES=0 BROKEN_PARK_STORE
faulty end    DETACHES=0 BROKEN_SLEEP_STORE
faulty end    DETACHES=0 BROKEN_ABANDON_STORE
faulty end    DETACHES=0 BROKEN_NO_QUARANTINE
faulty end    DETACHES=0 BROKEN_NO_BELL
faulty end    DETACHES=0 BROKEN_BELL_DRAINED_LAST
faulty end    DETACHES=0 BROKEN_NO_GENERATION
faulty end    DETACHES=1 POLLERS=0 BROKEN_ROUSE_ONLY_THE_PARKED
faulty end    DETACHES=1 POLLERS=0 BROKEN_DETACH_WITHOUT_LOOK
faulty end    DETACHES=1 POLLERS=0 BROKEN_LOOK_BEFORE_DISSOCIATION
faulty end    DETACHES=1 POLLERS=0 BROKEN_DETACH_FLAG_ONLY
faulty end    DETACHES=0 POLLERS=0 FATE=1 BROKEN_REVOKE_FLAG_ONLY
faulty end    DETACHES=0 POLLERS=0 FATE=1 BROKEN_REVOKE_BIT_ONLY
faulty end    DETACHES=0 POLLERS=0 FATE=1 BROKEN_FLAG_LOOKED_AT_EARLY
faulty end    DETACHES=0 POLLERS=0 FATE=2 BROKEN_PARK_WITHOUT_REVOKED
faulty end    DETACHES=0 POLLERS=0 FATE=3 BROKEN_REVOKE_LEAVES_PARKED
faulty end    DETACHES=0 POLLERS=0 FATE=3 BROKEN_REVOKED_WORD_IGNORED
faulty cycle  DETACHES=0 BROKEN_PARK_WITHOUT_SLEEP
'
# The same with everything at once: many more states, for when the protocol changes.
deep='
right  end    CALLS=2 POLLERS=1 DETACHES=1
right  end    CALLS=2 POLLERS=2 DETACHES=0
right  end    CALLS=3 POLLERS=0 DETACHES=2
right  end    CALLS=2 POLLERS=1 DETACHES=0 FATE=1
right  end    CALLS=2 POLLERS=0 DETACHES=1 FATE=1
right  end    CALLS=2 POLLERS=1 DETACHES=0 FATE=2
right  end    CALLS=2 POLLERS=0 DETACHES=1 FATE=2
right  end    CALLS=2 POLLERS=1 DETACHES=0 FATE=3 DEADLINES=0
'
[[ -n ${DEEP:-} ]] && checks+=$deep

work=$(mktemp -d "${TMPDIR:-/tmp}/call_word.XXXXXX")
trap 'rm -rf "$work"' EXIT

check() { # check NUMBER EXPECTATION KIND DEFINITION...: prints one line; fails when the outcome is not the expected one
  local folder=$work/$1 expectation=$2 kind=$3 outcome errors states
  shift 3
  mkdir -p "$folder"
  cd "$folder"
  spin -a "${@/#/-D}" "$model" >spin.log 2>&1 || { echo "FAIL  $kind  $*: spin refuses the model"; cat spin.log; return 1; }
  if [[ $kind == end ]]; then
    "${CC:-cc}" -O2 -w -DSAFETY -DCOLLAPSE -DNOFAIR -o pan pan.c
    ./pan -m100000 -w24 >pan.log 2>&1 || true
  else
    "${CC:-cc}" -O2 -w -DNP -DCOLLAPSE -DNOFAIR -o pan pan.c
    ./pan -l -m100000 -w24 >pan.log 2>&1 || true
  fi
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
  states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  outcome=unfinished
  if grep -q 'max search depth too small\|Search not completed' pan.log && [[ ${errors:-0} == 0 ]]; then
    outcome=unfinished
  elif [[ -n $errors ]]; then
    outcome=$([[ $errors == 0 ]] && echo right || echo faulty)
  fi
  if [[ $outcome != "$expectation" ]]; then
    echo "FAIL  $kind  $*: expected $expectation, found $outcome"
    tail -n 25 pan.log
    if ls ./*.trail >/dev/null 2>&1; then
      spin "${@/#/-D}" -t -p -g -k ./*.trail "$model" | tail -n ${TRAIL:-40}
    fi
    return 1
  fi
  echo "ok    $kind  $*: $outcome ($states states$(sed -n 's/^pan:1: */, /p' pan.log | head -n 1))"
  rm -rf "$folder"
}
export -f check
export work model CC="${CC:-cc}"

jobs=${JOBS:-$(nproc)}
((jobs > 4)) && jobs=4
if printf '%s' "$checks" | grep -v '^$' | cat -n |
  xargs -P "$jobs" -L 1 bash -c 'check "$@" || exit 1' check; then
  echo "the model holds, and every broken variant is found faulty"
else
  echo "the model and the expectation differ: see FAIL above"
  exit 1
fi
