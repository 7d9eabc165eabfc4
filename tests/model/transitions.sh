#!/usr/bin/env bash
# Checks that the docs and the code agree on where each transition happens: docs/CALL_WORD.md (T1 ...) and
# docs/MODELS.md (B1 ..., G1 ..., H1 ..., L1 ..., P1 ...) have a table "transition | files"; each named file must have a
# comment that names the transition, each comment of the code that names one must be in the table, and each transition
# stands in a model. And docs/MODELS.md says how many configurations and broken variants each model has.
#
#   transitions.sh [ROOT]     exit 0: they agree; 1: says what is missing where
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-transitions.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Lines "T5 path", from table rows of the form: | T5 | `path`, `path` |
for doc in docs/CALL_WORD.md docs/MODELS.md; do
  awk -F'|' '$2 ~ /^ [TBGPLH][0-9]+ $/ && NF == 4 && $3 ~ /`/ {
    gsub(/[ `]/, "", $2); gsub(/[ `]/, "", $3)
    n = split($3, files, ",")
    for (i = 1; i <= n; i++) print $2, files[i]
  }' "$doc"
done | sort -u >"$work/docs"

# The same from the comments of the code.
grep -rEo --include='*.h' --include='*.cpp' '//.*' kernel-shim libclient libserver nameserver netrpc |
  grep -v '_test\.cpp:' |
  awk '{
    file = $0; sub(/:.*/, "", file)
    text = substr($0, length(file) + 2)
    while (match(text, /(^|[^A-Za-z0-9_])[TBGPLH][0-9][0-9]?($|[^A-Za-z0-9_])/)) {
      name = substr(text, RSTART, RLENGTH)
      gsub(/[^TBGPLH0-9]/, "", name)
      print name, file
      text = substr(text, RSTART + RLENGTH - 1)
    }
  }' | sort -u >"$work/code"

outcome=0
if ! [[ -s $work/docs && -s $work/code ]]; then
  echo "nothing to compare: $(wc -l <"$work/docs") rows, $(wc -l <"$work/code") comments"
  exit 1
fi
while read -r name file; do
  echo "$name: the docs say $file, which has no comment that names it"
  outcome=1
done < <(comm -23 "$work/docs" "$work/code")
while read -r name file; do
  echo "$name: a comment in $file names it, the docs do not say so"
  outcome=1
done < <(comm -13 "$work/docs" "$work/code")
while read -r name; do
  grep -qE "(^|[^A-Za-z0-9_])$name($|[^A-Za-z0-9_])" tests/model/*.pml || { echo "$name: in no model"; outcome=1; }
done < <(cut -d' ' -f1 "$work/docs" | sort -u)
for checks in tests/model/*.checks; do
  model=$(basename "$checks" .checks)
  counts="$(grep -c '^right' "$checks" || true) configurations, $(grep -c '^faulty' "$checks" || true) broken variants"
  said=$(awk -F' *[|] *' -v model="\`$model\`" '$2 == model && $3 ~ /^[0-9]+$/ {
    print $3 " configurations, " $5 " broken variants" }' docs/MODELS.md)
  [[ $said == "$counts" ]] && continue
  echo "$model: docs/MODELS.md says ${said:-nothing}, $checks has $counts"
  outcome=1
done
((outcome == 0)) && echo "$(cut -d' ' -f1 "$work/docs" | sort -u | wc -l) transitions, $(wc -l <"$work/docs") places:" \
  "docs, code and models agree"
exit "$outcome"
