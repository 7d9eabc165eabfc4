#!/usr/bin/env bash
# That check.sh finds a fault in a new and in a changed source and in a changed header, does not check what has not
# changed, records only what is clean, and finds lines that are too wide: on a small tree of its own.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-lint-finds.XXXXXX")
trap 'rm -rf "$tree"' EXIT
export LINT_ROOT=$tree

fail() { echo "not so: $1"; sed 's/^/    /' "$tree/said"; exit 1; }
check() { # check STATUS WHAT: runs check.sh WHAT, which must end with STATUS
  local status=0
  "$here/check.sh" "$2" "$tree/build" >"$tree/said" 2>&1 || status=$?
  if ((status == 77)); then cat "$tree/said" && exit 77; fi
  ((status == $1)) || fail "'$2' ends with $1"
}
says() { grep -q -- "$1" "$tree/said" || fail "it says: $1"; }
fault_in_a_source='int leaked() { int* const one = new int(1); return *one; }'
fault_in_a_header='inline int same(int a) { return a == a ? 1 : 0; }'

mkdir -p "$tree/tests/lint" "$tree/libclient" "$tree/build/Unity"
cp "$here"/../../.clang-{tidy,format} "$tree"
echo 'inline int used() { return 1; }' >"$tree/libclient/used.h"
echo '#include "used.h"' >"$tree/libclient/user.cpp"
echo 'int other();' >"$tree/libclient/other.cpp"
echo 'int elsewhere();' >"$tree/libclient/elsewhere.cpp"
printf '#include "%s/libclient/%s.cpp"\n' "$tree" user "$tree" other >"$tree/build/Unity/unity_0.cxx"
cat >"$tree/build/compile_commands.json" <<END
[
{
  "directory": "$tree/build",
  "command": "/usr/bin/c++ -DTEXT=\\\\\\"text\\\\\\" -std=c++20 -o unity_0.o -c $tree/build/Unity/unity_0.cxx",
  "file": "$tree/build/Unity/unity_0.cxx"
}
]
END

check 1 recorded
says elsewhere.cpp
check 0 changed # What is new, too, if this build compiles it.
says 'checked: 2; .*not compiled in this build: 1'
check 0 rest
says 'checked: 3;'
check 0 changed
says 'checked: 0; .*not compiled in this build: 0'
check 0 recorded
echo 'inline int never_included() { return 1; }' >"$tree/libclient/never_included.h"
check 1 recorded
says never_included.h
check 0 rest
says 'checked: 1;'
echo "$fault_in_a_header" >>"$tree/libclient/never_included.h"
check 0 changed # which leaves that to `rest`
says 'checked: 0; .*not compiled in this build: 1'
check 1 rest
says 'never_included.h:2:.*misc-redundant-expression'
rm "$tree/libclient/never_included.h"

echo "$fault_in_a_source" >>"$tree/libclient/other.cpp"
check 1 changed
says 'checked: 1; .*findings in 1 file'
says 'other.cpp:2:.*clang-analyzer-cplusplus.NewDeleteLeaks'
LINT_AT_MOST=0 check 0 changed
says 'checked: 0; .*left to ./do lint: 1'
check 1 rest
check 1 rest # It was not recorded.
echo 'int other();' >"$tree/libclient/other.cpp"
check 0 changed
says 'checked: 0;'

# Comments and space are not code, but for NOLINT.
printf '%s\n' '// "What' 'int   other();  /* is */  // this: 1' >"$tree/libclient/other.cpp"
check 0 changed
says 'checked: 0;'
hash_of() { echo "$1" >"$tree/libclient/other.cpp" && echo "$tree/libclient/other.cpp" | "$here/../code.sh"; }
for code in 'int i;  // NOLINT(X)' 'int /* NOLINT(X) */ i;' 'char s[] = "//X";' 'char s[] = R"(/*X*/)";' \
  "int a = 1'0; int b = X; // '" "char a = '\"'; int b = X; // \""; do
  [[ $(hash_of "${code/X/1}") != "$(hash_of "${code/X/2}")" ]] || fail "'$code': X is code"
done
echo 'int other();' >"$tree/libclient/other.cpp"

echo "$fault_in_a_header" >>"$tree/libclient/used.h"
check 1 changed
says 'used.h:2:.*misc-redundant-expression'
says 'checked: 1;'
check 1 rest
check 1 rest
echo 'inline int used() { return 2; }' >"$tree/libclient/used.h"
check 0 rest
says 'checked: 1;'

sed -i 's/^  misc-redundant-expression,$//' "$tree/.clang-tidy"
check 0 changed
says 'the checks have changed'
check 0 rest # All of it again.
says 'checked: 3;'

wide=$(printf 'x %.0s' {1..60})x # 121 characters
fits=${wide:1}
echo "${fits//x/ä}" >"$tree/CMakeLists.txt"
address=https://$(printf 'x%.0s' {1..120})
printf '%s\n' "$fits" "| $wide |" '```' "$wide" '```' '```sh' "$fits" '```' "$address" >"$tree/page.md"
check 0 format
echo "${wide//x/ä}" >>"$tree/CMakeLists.txt"
printf '%s\n' '```sh' "$wide" '```' >>"$tree/page.md"
check 1 format
says 'CMakeLists.txt:2: more than 120 columns'
says 'page.md:11: more than 120 columns'
