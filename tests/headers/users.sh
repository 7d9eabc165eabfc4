#!/usr/bin/env bash
# users.sh FOLDER...: the programs in these folders include of lrpc's headers only those that docs/GUIDE.md offers to
# users ("Which headers to include"), and that of the command line, which programs of this project share. Prints others.
set -euo pipefail
(($# > 0)) || { sed -n '2,3s/^# \{0,1\}//p' "$0" >&2; exit 2; }
found=$(grep -rnE --include='*.h' --include='*.cpp' '^ *#include [<"]lrpc/' "$@" |
  grep -vE '[<"]lrpc/(client|server|nameserver|sealed|sandbox|raw_binding|command_line)\.h[>"]|[<"]lrpc/netrpc/' || true)
[[ -z $found ]] || { echo "$found" && exit 1; }
