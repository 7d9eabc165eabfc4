#!/usr/bin/env bash
# constants.sh SOURCE [planted]: docs/CONSTANTS.md has a row for each constant of the policies, with the value that the
# sources have, and for nothing else. Numbers without a name are found there only if the page names them: its text must
# then be in the file.
#
# With "planted" the page has wrong values, lacks rows and has some too many: all of that must be found.
set -euo pipefail
planted=${2:-}
. "$(dirname "${BASH_SOURCE[0]}")/planted.sh"
cd "$1"

# The policies and what they use: each constant in these files and folders has a row.
sources='
kernel-shim/include/lrpc/detail/shim/binder/allocator_page.h
kernel-shim/include/lrpc/detail/shim/binder/growth.h
kernel-shim/include/lrpc/detail/shim/call/caller_policy.h
kernel-shim/include/lrpc/detail/shim/call/calling_thread.h
kernel-shim/include/lrpc/detail/shim/call/distrust.h
kernel-shim/include/lrpc/detail/shim/call/gates.h
kernel-shim/include/lrpc/detail/shim/call/limits.h
kernel-shim/include/lrpc/detail/shim/call/poll_pace.h
kernel-shim/include/lrpc/detail/shim/system/asymmetric_fence.h
kernel-shim/include/lrpc/detail/shim/system/back_off.h
kernel-shim/include/lrpc/detail/shim/system/futex.h
kernel-shim/include/lrpc/detail/shim/system/moment.h
kernel-shim/include/lrpc/detail/shim/system/processor.h
kernel-shim/src/call/gates.cpp
kernel-shim/src/call/limits.cpp
kernel-shim/src/system/asymmetric_fence.cpp
kernel-shim/src/system/futex.cpp
kernel-shim/src/system/processor.cpp
libclient/include/lrpc/detail/client/binding/astack_list.h
libclient/include/lrpc/detail/client/call
libclient/src/binding/astack_list.cpp
libclient/src/binding/astack_supply.cpp
libclient/src/binding/secondary_astacks.cpp
libclient/src/binding/secondary_astacks.h
libclient/src/binding/waiting.h
libclient/src/call
libserver/src/estacks
libserver/src/poller
libserver/src/server_options.h
nameserver/src/allocator
'
# Of these files, the options with these names alone, by their defaults.
options='
libclient/include/lrpc/detail/client/import/binding.h grown_idle
libserver/include/lrpc/detail/server/server.h pollers poll_window estack_idle kept_estacks max_estacks
libserver/src/server_options.cpp
nameserver/include/lrpc/nameserver.h allocator_tick allocator_rules_always
'

files=$(find $sources $(awk '{print $1}' <<<"$options") \( -name '*.h' -o -name '*.cpp' \) | sort)

check() {
  table docs/CONSTANTS.md '
    s/^| `kEvictionUs` | 1,000 µs /| `kEvictionUs` | 2,000 µs /
    s/^| `kMostProcessors` | `6 \* kCallUs`, 18 /| `kMostProcessors` | `6 * kCallUs`, 24 /
    s/^| `poll_window` | 200 µs /| `poll_window` | 200 ms /
    /^| `kGapUs` /d
    s/^| `kSlowFactor` \(.*\)/&\n| `kSlowerFactor` \1/
    s/^| `kTurnUs` .*/&\n&/
    s/| `most - most \/ 8` |/| `most - most \/ 9` |/
    /^| `kForgetUs` /s/| chosen |$/| |/
    /^| `kPeriodUs` /s/| [^|]* | chosen |$/| | chosen |/' |
    awk -v options="$options" '
  function fail(text) { print text; failed = 1 }
  function name_of(path) { sub(/.*\//, "", path); return path }
  function plain(cell) { gsub(/`/, "", cell); return cell }
  function grouped(digits,   text) {
    for (text = ""; length(digits) > 3; digits = substr(digits, 1, length(digits) - 3))
      text = "," substr(digits, length(digits) - 2) text
    return digits text
  }
  function unit_of(type, name) {
    if (type ~ /nanoseconds/ || name ~ /Ns$/) return " ns"
    if (type ~ /microseconds/ || name ~ /(Us|Microseconds)$/) return " µs"
    if (type ~ /milliseconds/ || name ~ /Ms$/) return " ms"
    return type ~ /seconds/ ? " s" : ""
  }
  function add(file, class, type, name, value) {
    if ((file, name) in values) fail(file " has two constants " name ", and the page cannot tell them apart")
    else all[++count] = file SUBSEP name
    values[file, name] = of_class[class, name] = value
    units[file, name] = unit_of(type, name)
  }
  # A number, or what a reference to another constant (perhaps multiplied) leads to; else nothing.
  function number(file, value,   parts, n, key) {
    if (value ~ /^[0-9][0-9.]*(e-?[0-9]+)?$/) return value
    if (value ~ /^[0-9]+ \* k[A-Za-z]+$/) {
      n = value + 0; sub(/.* /, "", value)
      value = number(file, value)
      return value == "" ? "" : n * value
    }
    if (value !~ /^([A-Za-z]+::)*k[A-Za-z]+$/) return ""
    n = split(value, parts, "::")
    if (n == 1) return (file, value) in values ? number(file, values[file, value]) : ""
    key = parts[n - 1] SUBSEP parts[n]
    return key in of_class ? number(file, of_class[key]) : ""
  }
  # What the page has to say of the value.
  function expected(file, name,   value, n) {
    value = values[file, name]
    n = number(file, value)
    if (n ~ /^[0-9]+$/) n = grouped(n)
    if (n != "") n = n units[file, name]
    if (value ~ /^([0-9][0-9.]*(e-?[0-9]+)?)$/) return n
    if (value ~ /^0x/) return value
    return "`" value "`" (n != "" ? ", " n : "")
  }
  # What follows the name of a constant or an option: as it is written, but that a number has no marks and no suffix.
  function value_of(text,   bare) {
    sub(/;.*$/, "", text)
    if (text ~ /^ = /) text = substr(text, 4)
    else if (text !~ /^\{\./) text = substr(text, 2, length(text) - 2)
    bare = text
    gsub(/\x27/, "", bare); sub(/[uUlL]+$/, "", bare)
    return bare ~ /^[0-9.]+(e-?[0-9]+)?$/ ? bare : text
  }
  function declared(statement,   kind, type, name) {
    if (statement ~ /if constexpr/) return
    if (!match(statement, /constexpr [A-Za-z0-9_:<>, ]+ ([A-Za-z_][A-Za-z0-9_]*( = |\{)|k[A-Z][A-Za-z0-9]*[([])/) &&
        !match(statement, /const [A-Za-z0-9_:<>, ]+ k[A-Z][A-Za-z0-9]*( = |\{|\(|\[)/)) return
    kind = substr(statement, RSTART, RLENGTH)
    statement = substr(statement, RSTART + RLENGTH)
    match(kind, /( = |\{|\(|\[)$/)
    statement = substr(kind, RSTART) statement
    kind = substr(kind, 1, RSTART - 1)
    match(kind, /[A-Za-z0-9_]+$/)
    name = substr(kind, RSTART)
    type = substr(kind, 1, RSTART - 1)
    statement = value_of(statement)
    if (statement != "") add(base, class, type, name, statement)
  }

  BEGIN {
    m = split(options, lines, "\n")
    for (i = 1; i <= m; ++i) {
      n = split(lines[i], words, " ")
      if (n == 0) continue
      has_options[words[1]] = 1
      for (j = 2; j <= n; ++j) { option[words[1], words[j]] = 1; wanted[++many] = words[1] SUBSEP words[j] }
    }
  }
  FILENAME != "-" {
    if (FNR == 1) {
      base = name_of(FILENAME)
      if (base in path && path[base] != FILENAME) ambiguous[base] = 1
      path[base] = FILENAME
      class = statement = ""
    }
    line = $0
    sub(/ *\/\/.*/, "", line); gsub(/[ \t]+/, " ", line)
    texts[base] = texts[base] line " "
    if (match(line, /^(class|struct) [A-Za-z]+/)) { split(line, words, " "); class = words[2] }
    if (line ~ /^}/) class = ""
    if (FILENAME in has_options) {
      if (match(line, /^ [A-Za-z0-9_:<>]+ [a-z_]+( = |\{)/)) {
        split(line, words, /[ {]+/)
        if ((FILENAME, words[3]) in option) {
          rest = substr(line, index(line, words[3]) + length(words[3]))
          add(base, class, words[2], words[3], value_of(rest))
          found[FILENAME, words[3]] = 1
        }
      }
      next
    }
    if (statement != "") statement = statement line
    else if (line ~ /(constexpr|const) /) statement = line
    if (statement ~ /[;}]/ || statement ~ /\{ *$/) { declared(statement); statement = "" }
    next
  }

  !/^\|/ { table_of = ""; next }
  table_of == "" { table_of = /^\| constant / ? "constants" : /^\| file \| text / ? "texts" : "others"; next }
  /^\| ---/ || table_of == "others" { next }
  {
    row = $0
    gsub(/\\\|/, SUBSEP, row)
    cells = split(row, cell, / *\| */)
    for (i = 2; i < cells; ++i) gsub(SUBSEP, "|", cell[i])
    evidence = cell[cells - 1]
    name = table_of == "constants" ? plain(cell[2]) : ""
    file = plain(table_of == "constants" ? cell[4] : cell[2])
    what = file ": " (name != "" ? name : cell[3])
    if (file in ambiguous) fail(what ": two of the sources have this name")
    if (cells != (table_of == "constants" ? 8 : 7)) fail(what ": the row has " cells - 2 " cells")
    if (evidence !~ /^(measured|simulated|derived|chosen)/) fail(what ": the row does not say how the value was found")
    if (cell[cells - 2] == "") fail(what ": the row gives no reason")
    if (table_of == "texts") {
      ++numbers
      if (index(texts[file], substr(cell[3], 2, length(cell[3]) - 2)) == 0) fail(what ": there is no such text")
      next
    }
    if (!((file, name) in values)) { fail(what ": there is no such constant in the sources"); next }
    if ((file, name) in rows) fail(what ": it has two rows")
    rows[file, name] = 1
    sub(/[^a-z].*/, "", evidence); ++said[evidence]
    want = expected(file, name)
    rest = substr(cell[3], length(want) + 1)
    if (index(cell[3], want) != 1 || rest !~ /^( |, |$)/) fail(what ": the page says " cell[3] ", the source " want)
  }
  END {
    for (i = 1; i <= many; ++i) {
      if (wanted[i] in found) continue
      split(wanted[i], words, SUBSEP)
      fail(words[1] ": there is no option " words[2] " with a default")
    }
    for (i = 1; i <= count; ++i) {
      split(all[i], words, SUBSEP)
      if (!(all[i] in rows)) fail(words[1] ": " words[2] " has no row")
    }
    if (count < 100) fail("only " count " constants were seen: more were expected")
    printf "%d constants (%d measured, %d simulated, %d derived, %d chosen), %d numbers without a name\n", count,
      said["measured"], said["simulated"], said["derived"], said["chosen"], numbers
    exit failed
  }
' $files -; }

conclude '^poller_policy.h: kEvictionUs: the page says 2,000 µs, the source 1,000 µs' \
  '^guest_policy.h: kMostProcessors: the page says .*24, the source .*18' \
  '^server.h: poll_window: the page says 200 ms' '^poller.cpp: kGapUs has no row' \
  '^poller.cpp: kSlowerFactor: there is no such constant' '^guest_policy.h: kTurnUs: it has two rows' \
  '^server_options.h: .*most / 9.*: there is no such text' \
  '^poller_policy.h: kForgetUs: the row does not say how the value was found' \
  '^poller_load.h: kPeriodUs: the row gives no reason'
