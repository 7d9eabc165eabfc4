#!/usr/bin/env bash
# That clang compiles the public headers: all of them in one source. 77 where there is no clang.
set -euo pipefail
command -v clang++ >/dev/null || { echo "SKIPPED: clang++ is not installed"; exit 77; }
cd "$(dirname "$0")/../.."
folders=(kernel-shim/include libclient/include libserver/include nameserver/include sandbox/include sealed/include)
find "${folders[@]}" -name '*.h' -not -path '*/arch/*' -printf '#include "%P"\n' | sort |
  clang++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror "${folders[@]/#/-I}" -x c++ -
