#!/usr/bin/env bash
# rooms.sh SOURCE [planted]: a row of the table "Rooms" in docs/ARCHITECTURE.md may say which other rooms of its folder
# a room uses; then it uses no others, but in files that the row names. This goes by the #include lines of its sources
# and headers, but for tests: unity builds compile several rooms in one go, so the compiler's record of dependencies
# does not tell rooms apart.
#
# A protocol in netrpc/protocols/ may include of another protocol's folder only the header of that folder's name.
#
# With "planted" a row lacks a use, and protocols share nothing: both must be found.
set -euo pipefail
planted=${2:-}
. "$(dirname "${BASH_SOURCE[0]}")/planted.sh"
cd "$1"

# Private headers of a protocol that another one may include all the same, and why.
shared='
datagram select/channel_pools.h        calls over channels of CHANNEL, as SELECT makes them
sun_call select/channel_pools.h        the same
forwarding select/protocol.h           is a SELECT whose server can forward a call
sun_auth sun_call/rpc_message.h        Sun RPC in three layers: one format of messages
sun_select sun_call/rpc_message.h      the same
vipaddr vip/choice.h                   VIP in two halves: this one chooses when it opens
vipsize vip/virtual_protocol.h         and this one by the size of each message
'
[[ -z $planted ]] || shared=

check() {
  find kernel-shim libclient libserver nameserver netrpc stubgen bench \( -name '*.h' -o -name '*.cpp' \) |
    grep -vE '/(test|golden|bpf)/' | sort | xargs grep -nE '^#include "' |
    awk -v shared="$shared" '
  function exists(path,   line, found) {
    if (!(path in there)) { found = (getline line < path) >= 0; close(path); there[path] = found }
    return there[path]
  }
  function place(path,   parts, n, folder, i) { # "folder room" of a file; room "": it lies in none
    n = split(path, parts, "/")
    folder = parts[1]
    if (folder == "netrpc" && parts[2] == "include") return "netrpc src"
    i = parts[2] == "src" && folder != "netrpc" ? 3 : parts[2] != "include" ? 2 : parts[4] == "detail" ? 6 : 5
    return folder " " (i < n && ((folder, parts[i]) in rooms) ? parts[i] : "")
  }
  function resolve(from, name,   folder, dir, i, tries) {
    folder = from; sub(/\/.*/, "", folder)
    dir = from; sub(/\/[^\/]*$/, "", dir)
    split(dir "/ " folder "/src/ " folder "/include/ " folder "/ ", tries, " ")
    for (i = 1; i <= 5; ++i) if (exists(tries[i] name)) return tries[i] name
    return ""
  }

  function check_protocol(file, header,   from, to) {
    if (split(header, to, "/") != 4 || to[2] != "protocols" || split(file, from, "/") != 4) return
    if (from[3] == to[3] || to[4] == to[3] ".h") return
    if ((from[3] " " to[3] "/" to[4]) in excepted) { used[from[3] " " to[3] "/" to[4]] = 1; return }
    print file ": " from[3] " uses " header ", which is private to " to[3]
    failed = 1
  }

  BEGIN {
    n = split(shared, lines, "\n")
    for (i = 1; i <= n; ++i) if (split(lines[i], words, " ") > 2) excepted[words[1] " " words[2]] = 1
  }
  FILENAME != "-" { # docs/ARCHITECTURE.md
    if (/^## /) in_table = /^## Rooms/
    if (!in_table || !/^\|/ || /^\| ---/ || /^\| folder/) next
    split($0, cell, " *[|] *")
    if (cell[2] != "") { folder = cell[2]; gsub(/`/, "", folder) }
    many = split(cell[3], names, /[`, ]+/)
    for (i = 1; i <= many; ++i) if (names[i] != "") rooms[folder, names[i]] = 1
    room = cell[3]; gsub(/`/, "", room)
    if (match(cell[4], /; uses /)) ruled[folder, room] = substr(cell[4], RSTART + RLENGTH)
    next
  }

  { # file:line:#include "name"
    split($0, parts, ":")
    file = parts[1]
    split($0, quoted, "\"")
    split(place(file), from, " ")
    if (from[1] "/" from[2] == "netrpc/protocols") check_protocol(file, resolve(file, quoted[2]))
    rule = ruled[from[1], from[2]]
    name = file; sub(/.*\//, "", name)
    if (from[2] == "" || rule == "" || index(rule, "`" name "`")) next
    header = resolve(file, quoted[2])
    if (header == "") next
    split(place(header), to, " ")
    if (from[1] != to[1] || to[2] == "" || from[2] == to[2]) next
    ++seen
    named = index(rule, "`" to[2] "`") != 0
    if (rule ~ /^every room but/ ? named : !named) {
      print file ":" parts[2] ": " from[2] " uses " header ", and its row does not name " to[2]
      failed = 1
    }
  }
  END {
    for (pair in excepted) if (!(pair in used)) { print pair ": an exception that nobody needs"; failed = 1 }
    if (seen < 100) { print "only " seen + 0 " uses of one room by another were seen: more were expected"; failed = 1 }
    exit failed
  }
' <(table docs/ARCHITECTURE.md '/^| | `call` | the call word/ s/; uses `system` |$/; uses no other room |/') -
}

conclude '^kernel-shim/.*: call uses kernel-shim/.*does not name system' \
  '^netrpc/protocols/vipsize/.* private to vip$'
