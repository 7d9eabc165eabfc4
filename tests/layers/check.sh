#!/usr/bin/env bash
# check.sh BUILD SOURCE [planted]: no folder uses one that its row of the table in docs/ARCHITECTURE.md does not name,
# directly or by way of those that it does; and no private header (one that is not below an include/) is used outside of
# its folder. Asked is what the compiler really read: ninja's record of the dependencies of each object.
#
# With "planted" the table lacks a use, and nothing private is shared: both must be found.
# Ends with 77 if BUILD is not one of ninja's. Unit tests, which lie in a folder's test/, may use what they like of all
# layers, and the private headers of their own folder.
set -euo pipefail
build=$1 source=$2 planted=${3:-}
. "$(dirname "${BASH_SOURCE[0]}")/planted.sh"
[[ -e $build/.ninja_deps ]] || { echo "skipped: $build is no build of ninja's"; exit 77; }

# Private headers that others may use all the same, and why.
shared='
netrpc/netd netrpc/               lrpc-netd is the one place that knows all protocols
netrpc/user netrpc/               its tests have a real host and a simulated one
nameserver kernel-shim/bpf/       the program in the kernel is compiled in two folders
nameserver/directory nameserver/src/policy/toml_or_throw.h  both daemons read TOML
entry-fuzzer libserver/src/         runs stubs as the call path does
tests libclient/src/              told to wait for longer
tests libserver/src/              explored, attacked and simulated as they are
tests netrpc/                     networks of tests, and hostile packets
tests stubgen/src/                fuzzed as they are
tests nameserver/src/             fuzzed as they are
tests nameserver/directory/src/   fuzzed as they are
bench libserver/src/              measured as they are
bench netrpc/                     measured as they are
bench kernel-shim/bpf/            measured as they are
'

[[ -z $planted ]] || shared=

check() { ninja -C "$build" -t deps |
  awk -v build="$(realpath "$build")/" -v source="$(realpath "$source")/" -v shared="$shared" '
  function fail(text) { if (!(text in said)) { print text; said[text] = 1; failed = 1 } }
  function row_of(path,   parts, name) { # the table row that a path belongs to
    split(path, parts, "/")
    name = parts[1] "/" parts[2]
    return name in uses ? name : parts[1]
  }
  function is_test(path) { return path ~ /(^|\/)(test|test_support)(\/|$)/ }
  function may(from, to,   i, n, names) { # whether `from` may use `to`; looks at each row once
    if (from == to) return 1
    if (from in looked) return 0
    looked[from] = 1
    n = split(uses[from], names, " ")
    for (i = 1; i <= n; ++i) if (names[i] == "everything" || may(names[i], to)) return 1
    return 0
  }
  function excepted(from, header,   i) {
    for (i = 1; i <= exceptions; ++i) if (from == who[i] && index(header, what[i]) == 1) return 1
    return 0
  }

  FILENAME != "-" { # docs/ARCHITECTURE.md
    if (/^## /) in_table = /^## Folders/
    if (!in_table || !/^\| `/) next
    n = split($0, cell, " *[|] *")
    gsub(/`/, "", cell[2])
    row = cell[2]
    short[row] = row
    m = split(cell[3], targets, /[`, ]+/)
    for (i = 1; i <= m; ++i) { sub(/^lrpc::/, "", targets[i]); if (targets[i] != "") short[targets[i]] = row }
    uses[row] = " "
    m = split(cell[5], words, /[,; ()`]+/)
    for (i = 1; i <= m; ++i) {
      if (words[i] == "everything") uses[row] = "everything"
      else if (words[i] in short && uses[row] != "everything") uses[row] = uses[row] short[words[i]] " "
    }
    next
  }

  FNR == 1 {
    m = split(shared, lines, "\n")
    for (i = 1; i <= m; ++i) if (split(lines[i], words, " ") > 1) {
      who[++exceptions] = words[1]; what[exceptions] = words[2]
    }
  }
  /^[^ ]/ {
    object = $1
    testing = is_test(object) || object ~ /_test\.dir\//
    sub(/\/?CMakeFiles\/.*/, "", object); from = row_of(object)
    next
  }
  /^ / {
    header = $1
    if (header ~ /\.(cpp|cxx|c)$/) next
    if (index(header, build) == 1) header = substr(header, length(build) + 1)
    else if (index(header, source) == 1) header = substr(header, length(source) + 1)
    else while (header ~ /^\.\.\//) header = substr(header, 4)
    to = row_of(header)
    if (header ~ /^\// || !(to in uses) || !(from in uses) || from == to) next
    ++seen
    delete looked
    if (!testing && !may(from, to)) fail(from " uses " header ", and its row does not name " to)
    # What is generated is made for whoever includes it; tests share tests/support.
    if (header ~ /(^|\/)(include|generated|support|test_support)\// || header !~ /\.h$/ || header ~ /cmake_pch/) next
    if (testing && (is_test(header) || to == "tests")) next
    if (from == "tests" && is_test(header)) next
    if (!excepted(from, header)) fail(object " uses " header ", which is private to " to)
  }
  END {
    if (seen < 100) fail("only " seen + 0 " uses of one folder by another were seen: more were expected")
    exit failed
  }
' <(table "$source/docs/ARCHITECTURE.md" '/^| `libclient`/ s/ shim |$/ nothing of ours |/') -; }

conclude '^libclient uses kernel-shim/.*does not name kernel-shim' '^netrpc/netd uses .*private to netrpc'
