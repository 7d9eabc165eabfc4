#!/usr/bin/env bash
# Checks the models with spin (docs/MODELS.md): every configuration must be free of errors, and every variant with one
# rule taken away (BROKEN_...) must be found faulty, so that we know that the models can fail.
#
#   check.sh [MODEL...]                   exit 0: as expected, 1: not, 77: cannot run here (says why)
#   check.sh --unless-proved [MODEL...]   77, too, if nothing has changed since a model was proved: not the model, and
#                                         not the code that the docs' tables of transitions name for it
#   check.sh --record [MODEL...]          writes down in `proved` that the models hold for what is here now
#
# All of them take about seven minutes on two processors and at most 1.1 GB for each check. JOBS=n runs n checks at a
# time. DEEP=1 adds the larger configurations. ONLY=TEXT runs the lines that contain it.
#
# MODEL.checks has a line for each check: right or faulty, the kind, the definitions. `deep` in front: DEEP=1 only.
#   kind `end`: assertions and end states.   kind `cycle`: no run goes on for ever (see the head of call_word.pml).
#   kind `fair`: what the model's `ltl` claims holds if no process is kept from its next step for ever (see hints.pml).
set -euo pipefail

for tool in spin "${CC:-cc}"; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: $tool is not installed"
    exit 77
  fi
done

home=$(realpath "$(dirname "$0")")
root=$home/../..

# sources_of MODEL: its own files, and the code that the tables of docs/CALL_WORD.md and docs/MODELS.md name for each of
# its transitions.
sources_of() {
  printf '%s\n' "tests/model/$1.pml" "tests/model/$1.checks" tests/model/word.pml tests/model/check.sh
  awk -F'|' -v model="$home/$1.pml" '
    BEGIN { while ((getline line <model) > 0) text = text line "\n" }
    $2 ~ /^ [TBGPLH][0-9]+ $/ && NF == 4 && $3 ~ /`/ {
      gsub(/[ `]/, "", $2); gsub(/[ `]/, "", $3)
      if (text !~ "(^|[^A-Za-z0-9_])" $2 "($|[^A-Za-z0-9_])") next
      for (i = split($3, files, ","); i > 0; --i) print files[i]
    }' "$root/docs/CALL_WORD.md" "$root/docs/MODELS.md"
}
# state_of MODEL: one word for all that was said above. Of C++ the code counts alone, without its comments.
state_of() { (cd "$root" && sources_of "$1" | sort -u | tests/code.sh | sha256sum | cut -d' ' -f1); }

unless_proved= record=
case ${1:-} in
  --unless-proved) unless_proved=yes && shift ;;
  --record) record=yes && shift ;;
esac
models=("$@")
if ((${#models[@]} == 0)); then
  for list in "$home"/*.checks; do models+=("$(basename "$list" .checks)"); done
fi

if [[ -n $unless_proved ]]; then
  changed=()
  for model in "${models[@]}"; do
    grep -qsx "$model $(state_of "$model")" "$home/proved" || changed+=("$model")
  done
  if ((${#changed[@]} == 0)); then
    echo "SKIPPED: proved, and nothing that it models has changed since: ${models[*]}"
    exit 77
  fi
  models=("${changed[@]}")
fi

checks=
for model in "${models[@]}"; do
  while read -r first rest; do
    [[ -z $first || $first == '#'* ]] && continue
    if [[ $first == deep ]]; then
      [[ -n ${DEEP:-} ]] || continue
      read -r first rest <<<"$rest"
    fi
    line="$model $first $rest"
    [[ -z ${ONLY:-} || $line == *"$ONLY"* ]] && checks+=$line$'\n'
  done <"$home/$model.checks"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-model.XXXXXX")
trap 'rm -rf "$work"' EXIT

check() { # check NUMBER MODEL EXPECTATION KIND DEFINITION...: prints one line; fails if the outcome is another
  local folder=$work/$1 name=$2 expectation=$3 kind=$4 outcome errors states seconds memory
  local optimise=-O2 what=(-DSAFETY -DNOFAIR) options=
  shift 4
  # Found, or searched, within moments: the compiler takes longer.
  [[ $expectation == faulty || $name == trap || $name == binder ]] && optimise=-O0
  [[ $kind == cycle ]] && what=(-DNP -DNOFAIR) options=-l
  [[ $kind == fair ]] && what=(-DNFAIR=3) options='-a -f' && set -- FAIR "$@"
  mkdir -p "$folder"
  cd "$folder"
  spin -a "${@/#/-D}" "$home/$name.pml" >spin.log 2>&1 ||
    { echo "FAIL  $name  $kind  $*: spin refuses the model"; cat spin.log; return 1; }
  "${CC:-cc}" "$optimise" -w "${what[@]}" -DVECTORSZ=2048 -o pan pan.c
  # shellcheck disable=SC2086
  ./pan $options -m200000 -w24 >pan.log 2>&1 || true
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
  states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  seconds=$(sed -n 's/.*elapsed time \([0-9.e+-]*\) seconds.*/\1/p' pan.log)
  memory=$(sed -n 's/ *\([0-9.]*\)\ttotal actual memory usage.*/\1/p' pan.log)
  outcome=unfinished
  if grep -q 'max search depth too small\|Search not completed' pan.log && [[ ${errors:-0} == 0 ]]; then
    outcome=unfinished
  elif [[ -n $errors ]]; then
    outcome=$([[ $errors == 0 ]] && echo right || echo faulty)
  fi
  if [[ $outcome != "$expectation" ]]; then
    echo "FAIL  $name  $kind  $*: expected $expectation, found $outcome"
    tail -n 25 pan.log
    if ls ./*.trail >/dev/null 2>&1; then
      spin "${@/#/-D}" -t -p -g -k ./*.trail "$home/$name.pml" | tail -n "${TRAIL:-40}"
    fi
    return 1
  fi
  echo "ok    $name  $kind  $*: $outcome" \
    "($states states, ${seconds:-?} s, ${memory:-?} MB$(sed -n 's/^pan:1: */; /p' pan.log | head -n 1))"
  rm -rf "$folder"
}
export -f check
export work home CC="${CC:-cc}"

jobs=${JOBS:-$(nproc)}
((jobs > 4)) && jobs=4
if printf '%s' "$checks" | cat -n | xargs -P "$jobs" -L 1 bash -c 'check "$@" || exit 1' check; then
  echo "the models hold, and every broken variant is found faulty"
  if [[ -n $record && -z ${ONLY:-} ]]; then
    for model in "${models[@]}"; do
      sed -i "/^$model /d" "$home/proved" 2>/dev/null || true
      echo "$model $(state_of "$model")" >>"$home/proved"
    done
    sort -o "$home/proved" "$home/proved"
  fi
else
  echo "a model and the expectation differ: see FAIL above"
  exit 1
fi
