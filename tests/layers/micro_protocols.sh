#!/usr/bin/env bash
# micro_protocols.sh SOURCE [planted]: each source of a micro-protocol, and of what has a name of its own beside it, has
# at most 150 lines, as docs/COMPOSITE.md says.
#
# With "planted" each has 150 lines more: then all are too long.
set -euo pipefail
planted=${2:-}
. "$(dirname "${BASH_SOURCE[0]}")/planted.sh"
cd "$1/netrpc/composite/suite"

check() {
  wc -l -- *.h *.cpp | awk -v more="${planted:+150}" '
    $2 == "total" { next }
    { ++files; lines = $1 + more }
    lines > 150 { printf "%s has %d lines, 150 are the most\n", $2, lines; failed = 1 }
    END {
      if (files < 20) { print "only " files " sources were seen: more were expected"; failed = 1 }
      exit failed
    }'
}

conclude '^orphans.cpp has [0-9]* lines, 150 are the most' '^window.h has'
