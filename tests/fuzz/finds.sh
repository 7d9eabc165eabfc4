#!/usr/bin/env bash
# finds.sh --apply: only whether each patch applies to the sources as they are; 77: no patch(1) here.
# finds.sh [--seconds N] [FAULT...]: do the fuzzers find what is wrong? Each file planted/FAULT.patch puts one fault
# into a copy of the sources (build/planted), of which its target is built and run until it finds it, for N (300)
# seconds at most. Prints a table: fault, target, executions, seconds, what the target said. Fails if a fault is not
# found, or is not what the target says. `Target:` and `Says:`, in front of the patch, name the target and, as a regular
# expression, a part of what it says.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
copy=$PWD/build/planted planted=$PWD/tests/fuzz/planted

if [[ ${1:-} == --apply ]]; then
  command -v patch >/dev/null || { echo "SKIPPED: patch is not installed" && exit 77; }
  status=0
  for patch in "$planted"/*.patch; do
    patch --strip=1 --silent --forward --dry-run <"$patch" || { echo "$patch does not apply" && status=1; }
  done
  exit $status
fi

# The copy is kept, so that only what a patch touches is built again. A file that a patch has touched is the newer one.
refresh_copy() {
  mkdir -p "$copy" && git ls-files -z --cached --others --exclude-standard |
    tar --create --null --files-from=- | tar --extract --directory="$copy" --keep-newer-files 2>/dev/null
  [[ -e $copy/build/fuzz/build.ninja ]] || (cd "$copy" && cmake --preset fuzz) >"$copy/configure.log" 2>&1 ||
    { tail -n 20 "$copy/configure.log" >&2 && return 1; }
}

row() { printf '%-32s %-20s %11s %8s  %s\n' "$@"; }

# try_fault FAULT SECONDS: prints its row.
try_fault() {
  local fault=$1 seconds=$2 patch=$planted/$1.patch log=$copy/$1.log target says found executions began status=0
  target=$(sed -n 's/^Target: //p' "$patch")
  says=$(sed -n 's/^Says: //p' "$patch")
  if ! patch --directory="$copy" --strip=1 --silent --forward --dry-run <"$patch" >&2; then
    row "$fault" "$target" - - "DOES NOT APPLY"
    return 1
  fi
  patch --directory="$copy" --strip=1 --silent <"$patch" && in_force=$patch
  if cmake --build "$copy/build/fuzz" --target "$target" --parallel "$(nproc)" >"$log" 2>&1; then
    rm -rf "$copy/corpus" && tests/fuzz/corpus.sh unpack "$target" "$copy/corpus"
    began=$SECONDS
    "$(find "$copy/build/fuzz" -name "$target" -type f -perm -u+x)" -max_total_time="$seconds" -print_final_stats=1 \
      -timeout=30 -seed=1 -artifact_prefix="$copy/$fault-" "$copy/corpus" >"$log" 2>&1
    executions=$(sed -n -e 's/^stat::number_of_executed_units: *//p' -e 's/^#\([0-9]*\)[[:space:]].*/\1/p' "$log" |
      tail -n 1)
    found=$(grep -m 1 -oE 'not so: .*|runtime error: .*|ERROR: [A-Za-z]+: .*' "$log")
    if [[ -z $found ]]; then
      found="NOT FOUND" status=1
    elif ! grep -qE -- "$says" "$log"; then
      found="ANOTHER: $found" status=1
    fi
    row "$fault" "$target" "${executions:-0}" "$((SECONDS - began))" "${found:0:90}"
  else
    row "$fault" "$target" - - "DOES NOT BUILD: $log"
    status=1
  fi
  take_back
  return $status
}

in_force=
take_back() {
  [[ -z $in_force ]] || patch --directory="$copy" --strip=1 --silent --reverse <"$in_force" >&2
  in_force=
}
trap take_back EXIT
trap 'exit 130' INT TERM

seconds=300 status=0 faults=()
while (($#)); do
  case $1 in
    --seconds) seconds=${2:-300} && shift ;;
    *) faults+=("$1") ;;
  esac
  shift
done
((${#faults[@]})) || mapfile -t faults < <(cd "$planted" && printf '%s\n' *.patch | sed 's/\.patch$//')
refresh_copy || exit 1
row fault target executions seconds said
for fault in "${faults[@]}"; do try_fault "$fault" "$seconds" || status=1; done
exit $status
