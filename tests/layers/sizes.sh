#!/usr/bin/env bash
# sizes.sh [COMMIT]: the lines of each folder in the table of docs/ARCHITECTURE.md, comments and blank lines included:
# of the product, of its tests, of benches, and of generated code (the goldens). Counted are sources, interface files,
# models, scripts and CMake files of the working tree.
#
# With COMMIT: the same lines at that commit, now, and the change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# count FOLDER: lines "LINES PATH" for the paths on standard input, which lie in FOLDER.
count() (
  cd "$1"
  grep -E '\.(h|cpp|c|lrpc|x|pml|sh|cmake)$|(^|/)(CMakeLists\.txt|do)$' | tr '\n' '\0' |
    xargs -0 wc -l | sed 's/^ *//' | grep -v ' total$'
)

now() {
  git ls-files --cached --others --exclude-standard | while read -r path; do [[ ! -f $path ]] || echo "$path"; done |
    count .
}

at() ( # at COMMIT
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  git archive "$1" | tar xf - -C "$work"
  git ls-tree -r --name-only "$1" | count "$work"
)

{
  awk '/^## / { in_table = /^## Folders/ } in_table && /^\| `/ { gsub(/[|`]/, ""); print "folder", $1 }' \
    docs/ARCHITECTURE.md
  if (($# > 0)); then at "$1" | sed 's/^/before /'; fi
  now | sed 's/^/after /'
} | awk -v compared=$# '
  function folder_of(path,   parts, name) {
    split(path, parts, "/")
    name = parts[1] "/" parts[2]
    return name in known ? name : parts[1] in known ? parts[1] : "(others)"
  }
  function class_of(path) {
    if (path ~ /(^|\/)golden\//) return "generated"
    if (path ~ /^bench\//) return "bench"
    if (path ~ /(^|\/)(tests|test|test_support)\//) return "tests"
    return "product"
  }
  function show(name,   i, class) {
    printf "%-22s", name
    for (i = 1; i <= classes; ++i) {
      class = order[i]
      if (compared) printf " %7d %7d %+6d", n["before", name, class], n["after", name, class],
                           n["after", name, class] - n["before", name, class]
      else printf " %9d", n["after", name, class]
    }
    print ""
  }
  BEGIN { classes = split("product tests bench generated", order, " ") }
  $1 == "folder" { known[$2]; list[++folders] = $2; next }
  {
    class = class_of($3)
    n[$1, folder_of($3), class] += $2
    n[$1, "(all)", class] += $2
  }
  END {
    printf "%-22s", "folder"
    for (i = 1; i <= classes; ++i) printf compared ? " %22s" : " %9s", order[i]
    print ""
    list[++folders] = "(others)"
    list[++folders] = "(all)"
    for (i = 1; i <= folders; ++i) show(list[i])
  }'
