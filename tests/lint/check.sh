#!/usr/bin/env bash
# Checks the format of the sources, and the sources with clang-tidy (docs/TESTS.md, "Lint").
#
#   check.sh sources             the C++ sources and headers, one a line
#   check.sh format              whether clang-format would change one of them; lines of text that are too wide
#   check.sh recorded            whether each was ever recorded as clean; prints those that were not
#   check.sh changed BUILD       clang-tidy over what has changed since it was recorded as clean, and what is new
#   check.sh rest BUILD          clang-tidy over all that is not recorded as it is now; records what is clean
#
# Exit 0: nothing found, 1: something found, 77: cannot run here (says why).
#
# `clean` has the hash of the code of each source and header that was found clean, as tests/code.sh prints it; one line
# is for the checks themselves. A changed source is checked; a changed header is checked through one source that
# includes it, or, by `rest`, alone if none is found. Other includers stay recorded: what a header breaks in them is
# found when they change.
#
# BUILD is a folder with compile_commands.json, whose generated headers have been made. Sources that it compiles in one
# unity batch are checked in one run. What it does not compile `changed` leaves out; `rest` checks that with the flags
# of the nearest source. LINT_ONLY=REGEX restricts `rest` to sources whose paths match.
set -euo pipefail

# Never checked: sources of other projects, whose stubs this build does not generate; what ./do coverage alone compiles,
# by a macro of its own; headers for another processor.
never='^tests/(package|coverage)/|/aarch64\.h$'
at_most=${LINT_AT_MOST:-60} # sources that `changed` checks: minutes of one processor. It says how many are left.
version=14 # Of clang-format and clang-tidy: other versions find and format other things.
code=$(realpath "$(dirname "$0")/../code.sh")
root=$(realpath "${LINT_ROOT:-$(dirname "$0")/../..}")
clean=$root/tests/lint/clean
cd "$root"

skip() { echo "SKIPPED: $1"; exit 77; }
need_version() { # need_version TOOL
  command -v "$1" >/dev/null || skip "$1 is not installed"
  local said
  said=$("$1" --version)
  [[ $said == *"version $version."* ]] || skip "$1 is not version $version, but $(grep -o 'version [0-9.]*' <<<"$said")"
}

sources() {
  find . -path ./build -prune -o -path '*/golden/*' -prune -o \( -name '*.h' -o -name '*.cpp' \) -print |
    cut -c 3- | sort
}

# ---- how wide text is ----

# too_wide FILE...: lines of more than 120 characters, but for tables and output in Markdown, and for lines with a word
# that no line break makes short enough. Bytes are counted, less those that continue a character of UTF-8.
too_wide() {
  LC_ALL=C awk '
    FNR == 1 { markdown = FILENAME ~ /\.md$/; block = output = 0 }
    markdown && /^ *```/ { block = !block; output = block && /```$/ }
    length($0) <= 120 || markdown && (output || /^ *\|/) { next }
    {
      for (i = 1; i <= NF; ++i) if (length($i) > 80) next
      text = $0
      gsub(/[\200-\277]/, "", text)
      if (length(text) > 120) print FILENAME ":" FNR ": more than 120 columns"
    }' "$@"
}
texts() {
  find . \( -path ./build -o -path ./.git -o -path '*/golden' \) -prune -o -type f -print | cut -c 3- |
    grep -E '\.(h|cpp|c|md|lrpc|x|sh|cmake|pml|checks)$|(^|/)(CMakeLists\.txt|\.clang-.*)$|^(man/.*|\.ci/run|do)$'
}

# ---- what is recorded ----

checks() { grep -v '^ *#' .clang-tidy | sha256sum | sed 's/-$/.clang-tidy/'; }
differing() { # lines "HASH  PATH" of those that are not recorded so
  sources | grep -vE "$never" | "$code" | sort | comm -23 - <(sort "$clean")
}
unrecorded() { # paths
  sources | grep -vE "$never" | comm -23 - <(cut -c 67- "$clean" | sort)
}
record() { # adds the lines that it reads
  sort -k 2 >"$work/new"
  awk 'FNR == NR { again[$2]; next } !($2 in again)' "$work/new" "$clean" | sort -m -k 2 - "$work/new" >"$work/clean"
  mv "$work/clean" "$clean"
}

# ---- what is compiled, and how ----

# commands BUILD: lines "UNIT<tab>SOURCE<tab>FLAGS", the product's first; UNIT is what the compiler reads, FLAGS are
# quoted for the shell. A source that several targets compile stands there once.
commands() {
  awk -v root="$root/" '
    /^ *"command":/ { flags = $0; sub(/^ *"command": "[^ ]* /, "", flags); sub(/ -o [^ ]* -c .*/, "", flags)
      gsub(/\\\\/, "\\", flags); gsub(/\\"/, "\"", flags) }
    /^ *"file":/ {
      unit = $0; sub(/^ *"file": "/, "", unit); sub(/".*/, "", unit)
      if (index(unit, "/Unity/")) {
        while ((getline line <unit) > 0) if (sub(/^#include "/, "", line)) { sub(/".*/, "", line); say(line) }
        close(unit)
      } else say(unit)
    }
    function say(source) {
      if (index(source, root) != 1) return
      source = substr(source, length(root) + 1)
      if (source ~ /^build\// || source in said) return
      said[source]
      print (source ~ /^(tests|bench)\/|\/test(_support)?\// ? 2 : 1) "\t" unit "\t" source "\t" flags
    }' "$1/compile_commands.json" | sort -s -k 1,1 | cut -f 2-
}

# nearest PATH: the compiled source whose flags suit best: one that is told to look for headers in the innermost of the
# folders that PATH lies in; of those the one whose own path begins most like PATH.
nearest() {
  awk -F'\t' -v path="$1" -v root="$root/" '
    function common(a, b,   i) { for (i = 1; i <= length(a) && substr(a, i, 1) == substr(b, i, 1); ++i); return i }
    {
      score = common(path, $2)
      for (i = split($3, word, " "); i > 0; --i)
        if (word[i] ~ /^-I/ && index(root path, substr(word[i], 3) "/") == 1 && length(word[i]) > inner[FNR])
          inner[FNR] = length(word[i])
      score += 1000 * inner[FNR]
      if (score > best) { best = score; source = $2 }
    }
    END { print source }' "$work/commands"
}

# flags_of WORD...: sets `flags` to those that clang-tidy understands and needs.
flags_of() {
  flags=(-isystem "$root/tests/lint/clang14")
  while (($#)); do
    case $1 in
      -include | -isystem | -iquote)
        [[ $2 == *cmake_pch* ]] || flags+=("$1" "$2")
        shift
        ;;
      -I* | -D* | -U* | -std=* | -m* | -pthread | -fno-*) flags+=("$1") ;;
    esac
    shift
  done
}

# ---- clang-tidy ----

# Of the project's own files: what lies in build/ is generated.
plain_paths() { sed -E -e ':again; s|[^/]+/\.\./||; t again' -e '/^build\//d' | sort -u; }

# tidy SOURCE...: checks sources of one unit, or a header, in one run. Prints what was found; leaves the paths in which
# something was found in `found`, and the project's headers that were read in `read`.
tidy() {
  local -a flags words
  local file=$root/$1 status=0 source all_found= all_read=
  eval "words=(${flags_by_source[$1]})"
  flags_of "${words[@]}"
  if (($# > 1)) || [[ $1 == *.h ]]; then
    file=$work/batch.cpp
    printf "#include \"$root/%s\"  // NOLINT\n" "$@" >"$file"
  fi
  checked=$((checked + $#))
  clang-tidy --quiet --config-file=.clang-tidy "$file" -- "${flags[@]}" >"$work/said" 2>&1 || status=$?
  if (($# > 1)) && grep -q 'clang-diagnostic-error' "$work/said"; then # Together they cannot be compiled.
    for source in "$@"; do
      tidy "$source"
      all_found+=$found$'\n' all_read+=$read$'\n'
    done
    found=$all_found read=$all_read checked=$((checked - $#))
    return
  fi
  # What is found in generated headers is not the source's.
  awk -v build="$root/build/" '
    /^\/[^ ]*:[0-9]+:[0-9]+: (error|warning): / { generated = index($0, build) == 1; if (generated) found = 1 }
    /^[0-9]+ (warning|error)s?( and [0-9]+ errors?)? (generated|treated)|^Suppressed |^Use -header-filter/ { next }
    !generated { if (/error: /) ours = 1; print }
    END { exit ours || !found }' "$work/said" && status=0
  found=$(sed -nE "s|^$root/([^:]*):[0-9]+:[0-9]+: (warning\|error): .*|\1|p" "$work/said" | plain_paths)
  ((status == 0)) || [[ -n $found ]] || found=$1
  read=$("${CXX:-c++}" -MM -w "${flags[@]}" "$file" | tr -s ' \\' '\n\n' | sed -n "s|^$root/\(.*\.h\)$|\1|p" |
    plain_paths)
}

# check_unit SOURCE...: as above; what was found clean is struck off `todo`, and recorded if `recording`.
check_unit() {
  local path
  local sound=
  if [[ -z $recording ]] && ((checked + $# > at_most)); then
    left=$((left + $#))
    for path in "$@"; do unset "todo[$path]"; done
    return
  fi
  echo "checking $*"
  tidy "$@"
  for path in $found; do faulty[$path]=1; done
  for path in "$@" $read; do
    [[ -n ${faulty[$path]:-} || -z ${todo[$path]:-} ]] || sound+="${todo[$path]}  $path"$'\n'
    unset "todo[$path]"
  done
  [[ -z $recording || -z $sound ]] || printf '%s' "$sound" | record
}

# including HEADER FILE...: those that seem to include it, by some end of its path.
including() {
  local end=$1 ends=$1
  while [[ $end == */* ]]; do end=${end#*/} ends+="|$end"; done
  shift
  grep -lE "#include [\"<](\.\./)*(${ends//./\\.})[\">]" "$@" || true
}

# includers HEADER: compiled sources that include it, directly if there is one; the likeliest and the smallest first.
includers() {
  local headers=$1 header direct
  for _ in 1 2 3; do
    direct=$(for header in $headers; do including "$header" "${!flags_by_source[@]}"; done)
    if [[ -n $direct ]]; then
      xargs wc -l <<<"$direct" | awk -v stem="$(basename "$1" .h)" -v top="${1%%/*}/" '
        $2 != "total" { print (index($2, "/" stem ".cpp") ? 0 : index($2, top) == 1 ? 1 : 2), $1, $2 }' |
        sort -n -k 1,1 -k 2,2 | cut -d' ' -f3
      return
    fi
    headers=$(for header in $headers; do
      sources | grep '\.h$' | { mapfile -t all; including "$header" "${all[@]}"; }
    done)
    [[ -n $headers ]] || return 0
  done
}

check_alone() { # with the flags of another source
  flags_by_source[$1]=${flags_by_source[$(nearest "$1")]}
  check_unit "$1"
  unset "flags_by_source[$1]"
}

check_header() { # through the first includer that does include it
  local source tries=0 headers
  local -a words flags
  for source in $(includers "$1"); do
    ((++tries <= 5)) || break
    eval "words=(${flags_by_source[$source]})"
    flags_of "${words[@]}"
    headers=$("${CXX:-c++}" -MM -w "${flags[@]}" "$source" | tr -s ' \\' '\n\n' | plain_paths)
    if grep -qxF -e "$root/$1" -e "$1" <<<"$headers"; then
      check_unit "$source"
      unset "todo[$1]"
      return
    fi
  done
  if [[ -n $recording ]]; then check_alone "$1"; else elsewhere=$((elsewhere + 1)) && unset "todo[$1]"; fi
}

# check_all BUILD: what stands in `todo`.
check_all() {
  local unit source flags last= path
  local -a batch=()
  declare -gA flags_by_source=() faulty=()
  while IFS=$'\t' read -r unit source flags; do flags_by_source[$source]=$flags; done <"$work/commands"
  while IFS=$'\t' read -r unit source flags; do
    if [[ $unit != "$last" ]] && ((${#batch[@]})); then check_unit "${batch[@]}" && batch=(); fi
    last=$unit
    [[ -z ${todo[$source]:-} ]] || batch+=("$source")
  done <"$work/commands"
  if ((${#batch[@]})); then check_unit "${batch[@]}"; fi
  for path in $(printf '%s\n' "${!todo[@]}" | sort); do
    [[ -n ${todo[$path]:-} ]] || continue
    if [[ $path == *.h ]]; then check_header "$path"; else check_alone "$path"; fi
  done
}

# ---- commands ----

command=${1:-} recording= checked=0 left=0 elsewhere=0
work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-lint.XXXXXX")
trap 'rm -rf "$work"' EXIT
declare -A todo=()
touch "$clean"

case $command in
  sources) sources ;;
  format)
    need_version clang-format
    mapfile -t all < <(texts)
    wide=$(too_wide "${all[@]}")
    sources | xargs -P "$(nproc)" -n 100 clang-format --dry-run -Werror
    [[ -z $wide ]] || { echo "$wide"; exit 1; }
    ;;
  recorded)
    need_version clang-tidy # Without it nobody can record anything.
    missing=$(unrecorded)
    [[ -z $missing ]] || { printf '%s\n' "not recorded as clean (./do lint):" "$missing"; exit 1; }
    ;;
  changed | rest)
    need_version clang-tidy
    [[ -e ${2:?a build}/compile_commands.json ]] || skip "$2 has no compile_commands.json"
    commands "$2" >"$work/commands"
    if [[ $command == rest ]]; then
      recording=yes
      grep -qxF "$(checks)" "$clean" || checks >"$clean"
      differing | grep -E "  .*${LINT_ONLY:-}" >"$work/differing" || true
    else
      differing >"$work/differing"
      grep -qxF "$(checks)" "$clean" ||
        echo "the checks have changed since the sources were recorded: ./do lint checks all again"
    fi
    declare -A compiled=()
    while IFS=$'\t' read -r _ path _; do compiled[$path]=1; done <"$work/commands"
    while read -r hash path; do
      if [[ $command == changed && $path == *.cpp && -z ${compiled[$path]:-} ]]; then
        elsewhere=$((elsewhere + 1))
      else
        todo[$path]=$hash
      fi
    done <"$work/differing"
    check_all "$2"
    echo "sources checked: $checked; findings in ${#faulty[@]} files; changed, and left to ./do lint: $left;" \
      "not compiled in this build: $elsewhere"
    ((${#faulty[@]} == 0))
    ;;
  *)
    sed -n '2,/^set/ s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
