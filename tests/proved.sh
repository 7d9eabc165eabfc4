#!/usr/bin/env bash
# proved.sh: long test programs that need not run again while what they see is what it was when they passed.
#
#   proved.sh holds BUILD PROGRAM    exit 0 if PROGRAM has passed for just these sources, this compiler and this libc
#   proved.sh record BUILD PROGRAM   writes down in tests/proved that it has
#
# BUILD is a folder of ninja's, up to date. A program sees the project's files that it was compiled from, headers
# included, by ninja's record. One that runs the compiler itself sees the public headers, too. Of C++ the code counts
# alone, without its comments.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..") record=$root/tests/proved

seen_by() { # seen_by BUILD PROGRAM: paths below the project's root
  local build inputs
  build=$(realpath "$1")
  inputs=$(ninja -C "$build" -t inputs "$2")
  {
    tr ' ' '\n' <<<"$inputs"
    grep '\.o$' <<<"$inputs" | xargs ninja -C "$build" -t deps | sed -n 's/^    //p'
    [[ $2 != stubgen_compiled_test ]] || find "$root"/{kernel-shim,libclient,libserver,entry-fuzzer}/include -name '*.h'
  } | sed -n "s|^$root/||p" | grep -v '^build/' | sort -u
}

state_of() { # state_of BUILD PROGRAM: one word for all of that
  local files
  files=$(seen_by "$@")
  [[ -n $files ]] || { echo "proved.sh: ninja knows no source of $2" >&2; return 1; }
  {
    "${CXX:-c++}" --version | head -n 1
    getconf GNU_LIBC_VERSION
    (cd "$root" && tests/code.sh <<<"$files")
  } | sha256sum | cut -d' ' -f1
}

state=$(state_of "$2" "$3")
case $1 in
  holds) grep -qsx "$3 $state" "$record" ;;
  record)
    { grep -sv "^$3 " "$record" || true; echo "$3 $state"; } | sort >"$record.new"
    mv "$record.new" "$record"
    ;;
  *) exit 2 ;;
esac
