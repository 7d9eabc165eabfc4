#!/usr/bin/env bash
# No source, script, test or page has more than 400 lines, but for goldens and for the files of `longer`.
#
#   lengths.sh [FOLDER]    exit 0: none has, 1: prints those that have, and those of `longer` that need not stand there
#   lengths.sh planted     that it finds one, in a folder of its own
set -euo pipefail
most=400

# Files that may be longer, and why.
longer='
tests/model/binder.pml     spin reads one file: the states of a model, its steps, and what is promised about them
tests/model/call_word.pml  the same
tests/model/estacks.pml    the same
tests/model/growth.pml     the same
tests/model/hints.pml      the same
tests/model/leases.pml     the same
tests/model/started.pml    the same
'

too_long() { # of the current folder
  find . \( -path ./build -o -path ./.git -o -path '*/golden' \) -prune -o -type f -print0 |
    grep -zE '\.(h|cpp|c|md|lrpc|x|sh|cmake|pml)$|/CMakeLists\.txt$|^\./(man/.*|do)$' |
    xargs -0 wc -l |
    awk -v most=$most -v longer="$longer" '
      BEGIN {
        n = split(longer, line, "\n")
        for (i = 1; i <= n; ++i) if (split(line[i], word, " ") > 1) may[word[1]]
      }
      $1 <= most || $2 == "total" { next }
      {
        path = substr($2, 3)
        if (path in may) delete may[path]
        else print path " has " $1 " lines"
      }
      END { for (path in may) print path " need not be listed" }'
}

if [[ ${1:-} == planted ]]; then
  folder=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-lengths.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  cd "$folder"
  longer='
listed.cpp  has a reason
short.cpp   needs none'
  mkdir golden
  for path in listed.cpp golden/output.h page.md; do yes '' | head -n $((most + 1)) >"$path" || true; done
  for path in short.cpp page.sh; do yes '' | head -n $most >"$path" || true; done
  found=$(too_long)
  expected="page.md has $((most + 1)) lines
short.cpp need not be listed"
  [[ $found == "$expected" ]] || { echo "found: $found" && exit 1; }
  exit 0
fi

cd "${1:-$(dirname "$0")/../..}"
found=$(too_long)
[[ -z $found ]] || { echo "$found" && exit 1; }
