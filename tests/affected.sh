#!/usr/bin/env bash
# affected.sh BUILD COMMIT: the numbers of the tests of BUILD (a folder, up to date) that can see what has changed since
# COMMIT, in the form that `ctest -I` reads: "0,0,0,NUMBER,...".
#
# A test sees a change if a program of this build that it is or starts was made from a file that has changed, if it is
# given such a file, or if such a file lies beside its program's sources.
set -euo pipefail
build=$(realpath "$1") commit=$2
top=$(git rev-parse --show-toplevel)

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-affected.XXXXXX")
trap 'rm -rf "$work"' EXIT

{ git -C "$top" diff --name-only "$commit" && git -C "$top" ls-files --others --exclude-standard; } | sort -u |
  sed "s|^|$top/|" >"$work/changed"

# Objects and generated files whose sources, headers included, have changed; then, by ninja's graph, their products.
ninja -C "$build" -t deps | awk -v build="$build" '
  FILENAME != "-" { changed[$0]; next }
  /^[^ ].*: #deps/ { object = $0; sub(/: #deps.*/, "", object); next }
  /^    / {
    file = substr($0, 5)
    if (file !~ /^\//) file = build "/" file
    if (file in changed) print object
  }' "$work/changed" - | sort -u >"$work/objects"
cat "$work/changed" "$work/objects" >"$work/stale"

ctest --test-dir "$build" --show-only=json-v1 >"$work/tests.json"
# Lines "NUMBER PATH", for each path in a test's command; ctest indents the members of a test by six.
awk '
  /^      "command" :/ { ++number; inside = 1; next }
  inside && /^      \],?$/ { inside = 0 }
  inside && match($0, /"\/[^"]*"/) { print number, substr($0, RSTART + 1, RLENGTH - 2) }
' "$work/tests.json" >"$work/commands"

# Which of the paths are affected.
cut -d' ' -f2- "$work/commands" | sort -u | while read -r path; do
  if grep -qxF -- "$path" "$work/changed"; then
    echo "$path"
  elif [[ $path == "$build"/* ]]; then
    own=${path#"$build"/} folder=$top/$(dirname "${path#"$build"/}")/
    ninja -C "$build" -t inputs "$own" >"$work/inputs" 2>/dev/null || true
    if grep -qF -- "$folder" "$work/changed" || grep -qxFf "$work/stale" "$work/inputs"; then
      echo "$path"
    fi
  fi
done >"$work/paths"

awk 'FILENAME ~ /paths$/ { affected[$0]; next }
     { number = $1; sub(/^[0-9]+ /, "") }
     $0 in affected && !(number in seen) { seen[number]; list = list "," number }
     END { print "0,0,0" (list == "" ? ",1000000" : list) }' "$work/paths" "$work/commands"
