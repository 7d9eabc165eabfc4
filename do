#!/usr/bin/env bash
# The one way to set up, build, test and measure lrpc. Needs a shell and, for what is missing, apt.
set -euo pipefail
called_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'END'
./do setup                  install by apt what is missing (nothing, if nothing is)
./do build [PRESET]         build; PRESET is release (default), debug, asan or tsan; the result is in build/PRESET
./do test [ARGS] [-- ...]   build and run the tests; under ASan+UBSan and TSan those in which these can find something
      --quick                 units and calls over every gate, without sanitizers: for the edit loop
      --since COMMIT          only tests that can see what has changed since then
      --all                   every test in debug and asan, long forms, models, the benches' tests (docs/TESTS.md)
      --in BUILD              only in debug, asan or tsan
      --no-sanitizers         only in debug
      other arguments         go to ctest, for example -R conformance
./do bench [ARGS]           build release and run build/release/bench/lrpc-bench ARGS (default: all)
./do coverage               run the tests without sanitizers, counting; print how much of each part they reach
./do model                  check the models with spin, run the long test programs; record that they hold as they are
./do fuzz [ARGS] [TARGET...]  build the fuzz targets (all) with clang's libFuzzer, and run each
      --seconds N             for so long (600; with --planted 300)
      --planted [FAULT...]    put faults (all) in, one at a time, and see that the fuzzers find each
./do fmt                    format the sources
./do lint                   check the format; clang-tidy what is not recorded as clean, record what is (docs/TESTS.md)
./do install --prefix P     build release and install it to P
./do clean                  remove build/
END
}

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'do: %s\n' "$*" >&2; exit 1; }

# ---- what must be installed ----

build_packages=(g++ cmake ninja-build pkg-config libgtest-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev
  libfmt-dev libspdlog-dev libsodium-dev liburing-dev libseccomp-dev libtomlplusplus-dev)
optional_packages=(clang libbpf-dev bpftool) # the eBPF program; everything builds and passes without
directory_packages=(libcurl4-openssl-dev) # lrpc-directory; everything else builds and passes without
cipher_packages=(libipsec-mb-dev) # quicker AES for AUTH, on amd64; everything builds and passes without
sanitizer_packages=(clang libclang-rt-dev llvm) # the sanitizers' builds, in less time than by GCC
# Tests that need these skip without. lld links faster. The packages of rpcbind and etcd start services, unless
# policy-rc.d forbids.
test_packages=(rpcsvc-proto libtirpc-dev lld valgrind spin iproute2 nftables clang-format clang-tidy)
if [[ -x /usr/sbin/policy-rc.d ]] && ! /usr/sbin/policy-rc.d rpcbind start &>/dev/null; then
  test_packages+=(rpcbind)
fi
if [[ -x /usr/sbin/policy-rc.d ]] && ! /usr/sbin/policy-rc.d etcd start &>/dev/null; then
  test_packages+=(etcd-server openssl)
fi
format_packages=(clang-format)
lint_packages=(clang-format clang-tidy)
fuzz_packages=(clang libclang-rt-dev)
coverage_packages=(gcovr)

missing_of() { # missing_of PACKAGE...: prints those that are not installed
  local package
  for package in "$@"; do
    # A line for each architecture.
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

# need PACKAGE...: installs what is missing. Fails, with the names, if that cannot be done.
need() {
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here; if the build fails, install what Debian calls: $*"
    return 0
  fi
  local -a missing as_root=()
  mapfile -t missing < <(missing_of "$@")
  ((${#missing[@]} == 0)) && return 0
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null || { [[ -t 0 ]] && command -v sudo >/dev/null; }; then
      as_root=(sudo)
    else
      say "not installed, and neither root nor sudo to install: ${missing[*]}"
      return 1
    fi
  fi
  if ! command -v apt-get >/dev/null; then
    say "not installed, and no apt to install: ${missing[*]}"
    return 1
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q >&2 || say "apt-get update failed; trying with the lists that are here"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2; then
    mapfile -t missing < <(missing_of "$@")
    say "apt could not install: ${missing[*]}"
    return 1
  fi
}

need_for_build() {
  need "${build_packages[@]}" || die "cannot build without these packages"
  # Asked for once; who removes build/ is asked again.
  mkdir -p build
  if [[ ! -e build/.optional ]]; then
    need "${optional_packages[@]}" || say "going on without the eBPF program"
    touch build/.optional
  fi
  if [[ ! -e build/.directory ]]; then
    need "${directory_packages[@]}" || say "going on without lrpc-directory"
    touch build/.directory
  fi
  if [[ ! -e build/.ciphers && $(dpkg --print-architecture 2>/dev/null) == amd64 ]]; then
    need "${cipher_packages[@]}" || say "going on with libsodium's AES"
    touch build/.ciphers
  fi
}
need_for_tests() {
  need_for_build
  need "${test_packages[@]}" || say "going on; tests that need them will be skipped"
}

# ---- building ----

# Programs built with ThreadSanitizer may not find their memory where the kernel randomises addresses by many bits; they
# run at build time, too (the stub generator, the listing of tests).
without_randomisation=()
if setarch -R true 2>/dev/null; then without_randomisation=(setarch -R); fi

# Whether clang can compile the sanitizers' builds: it knows the C++ library, and its AddressSanitizer is one that the
# tests' guard of forks knows.
clang_sanitizes() {
  local headers=$'#include <algorithm>\n#include <latch>\n#include <ranges>\n#include <thread>\nint main() {}'
  clang++ -std=c++20 -fsanitize=thread -x c++ -o /dev/null - <<<"$headers" 2>/dev/null &&
    cat tests/support/fork_under_asan.cpp - <<<"$headers" |
    clang++ -std=c++20 -fsanitize=address,undefined -x c++ -o /dev/null - 2>/dev/null
}

build() { # build PRESET [TARGET...]
  local preset=$1 file=build/$1/build.ninja all=OFF elsewhere=OFF
  local -a around=() options=()
  [[ $preset == tsan ]] && around=("${without_randomisation[@]}")
  [[ -d build/$preset || $preset =~ ^(release|debug|asan|tsan|fuzz)$ ]] || die "no such preset: $preset"
  shift
  if [[ $preset == [at]san ]]; then
    build debug lrpc-stubgen lrpc-test-sealed lrpc_command_line || return 1 # set -e is off where a build is a condition
    options+=("-DLRPC_PLAIN_BUILD=$PWD/build/debug")
    # A folder keeps its compiler.
    if [[ ! -e build/$preset/CMakeCache.txt && -z ${CXX:-} ]]; then
      need "${sanitizer_packages[@]}" || true
      if clang_sanitizes; then
        options+=("-DCMAKE_CXX_COMPILER=clang++")
      else
        say "compiling $preset without clang, which takes longer"
      fi
    fi
  fi
  [[ -z ${long_run:-} ]] || all=ON
  [[ -z ${every_build:-} ]] || elsewhere=ON
  # Once; afterwards ninja itself configures anew when a CMake file has changed.
  options+=("-DLRPC_ALL_TESTS=$all" "-DLRPC_QUICK_ELSEWHERE=$elsewhere")
  if [[ ! -e $file || CMakePresets.json -nt $file ]] ||
    ! grep -qx "LRPC_ALL_TESTS:BOOL=$all" "build/$preset/CMakeCache.txt" ||
    ! grep -qx "LRPC_QUICK_ELSEWHERE:BOOL=$elsewhere" "build/$preset/CMakeCache.txt"; then
    "${around[@]}" cmake --preset "$preset" "${options[@]}" >&2 || return 1
  fi
  "${around[@]}" cmake --build "build/$preset" ${1:+--target "$@"} >&2
}

# ---- testing ----

# shellcheck source=tests/runner.sh
source tests/runner.sh

# The long test programs that have not passed yet for just these sources.
prove() {
  local program label status=0
  while read -r program label; do
    build debug "$program"
    tests/proved.sh holds build/debug "$program" && continue
    if ctest --test-dir build/debug -L "^$label\$" -j "$(nproc)" --output-on-failure; then
      tests/proved.sh record build/debug "$program"
    else
      status=1
    fi
  done <<<"$long_programs"
  return $status
}

# ---- sources ----

format() { tests/lint/check.sh sources | xargs -r clang-format -i; }

# Compiles nothing but what generates sources.
lint() {
  local status=0
  tests/lint/check.sh format || status=1
  cmake --preset debug -B build/lint -DLRPC_ALL_TESTS=ON >&2
  ninja -C build/lint -t targets all |
    sed -n -e 's/^\([^/]*\.lrpc\): phony$/\1/p' -e 's/^\([^/].*\.skel\.h\): .*/\1/p' |
    xargs cmake --build build/lint --target >&2
  tests/lint/check.sh rest build/lint || status=1
  return $status
}

# ---- coverage ----

# Lines of each part that the tests of the debug build reach, by gcov. Sandboxes let files be written here; what a
# process did that a test killed on purpose is not counted.
coverage() {
  local parts=(kernel-shim libclient libserver nameserver netrpc)
  mkdir -p build
  local ends=-DLRPC_COUNTING_ENDS=60 # a real-time signal that nothing else uses
  "${CXX:-g++}" "$ends" -c tests/coverage/exit.cpp -o build/coverage-exit.o
  # Sealed programs cannot write: theirs come from a build that does not count.
  build debug lrpc-stubgen lrpc-test-sealed lrpc_command_line
  cmake --preset debug -B build/coverage "-DCMAKE_CXX_FLAGS=--coverage -fprofile-update=atomic $ends" \
    -DCMAKE_C_FLAGS=--coverage \
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -g1" "-DCMAKE_EXE_LINKER_FLAGS=$PWD/build/coverage-exit.o" \
    "-DLRPC_PLAIN_BUILD=$PWD/build/debug" >&2
  cmake --build build/coverage >&2
  find build/coverage -name '*.gcda' -delete
  ctest --test-dir build/coverage -j "$(nproc)" -LE 'model|explore|compiled|lint' -E '^package\.' --output-on-failure \
    >build/coverage/tests.log ||
    say "some tests failed: build/coverage/tests.log"
  gcovr -j "$(nproc)" --root . build/coverage "${parts[@]/#/--filter=}" --exclude '.*/test/' --exclude '.*fuzz' \
    --gcov-ignore-parse-errors --csv 2>/dev/null |
    awk -F, 'NR > 1 { split($1, path, "/"); lines[path[1]] += $2; reached[path[1]] += $3 }
      END { for (part in lines) printf "%-12s %6d of %6d lines  %5.1f %%\n", part, reached[part], lines[part],
              100 * reached[part] / lines[part] }' | sort
}

# ---- fuzzing ----

# fuzz_one TARGET SECONDS: runs it; prints its row of the table. It begins with what is kept for good
# (tests/fuzz/corpus.sh); what it finds stays in build/fuzz/corpus/TARGET.
fuzz_one() {
  local target=$1 seconds=$2 began=$SECONDS status=0 found=nothing executions
  local words=tests/fuzz/dictionaries/$1 log=build/fuzz/corpus/$1.log
  local -a dictionary=()
  tests/fuzz/corpus.sh unpack "$target" "build/fuzz/corpus/$target"
  [[ -f $words ]] && dictionary=(-dict="$words")
  "$(find build/fuzz -name "$target" -type f -perm -u+x)" -max_total_time="$seconds" -print_final_stats=1 -timeout=30 \
    -rss_limit_mb=4096 -artifact_prefix="build/fuzz/corpus/$target-" "${dictionary[@]}" "build/fuzz/corpus/$target" \
    >"$log" 2>&1 || status=1
  if ((status != 0)); then
    { grep -E 'not so:|runtime error|ERROR|SUMMARY|Test unit written' "$log" || tail -n 20 "$log"; } >&2
    found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    found=${found:-see $log}
  fi
  executions=$(sed -n -e 's/^stat::number_of_executed_units: *//p' -e 's/^#\([0-9]*\)[[:space:]].*/\1/p' "$log" |
    tail -n 1)
  printf '%-22s %12s %9s  %s\n' "$target" "${executions:-0}" "$((SECONDS - began))" "$found"
  return $status
}

fuzz() {
  local seconds=600 target status=0 row
  local -a targets=() rows=()
  while (($#)); do
    case $1 in
      --seconds) seconds=${2:-600} && shift ;;
      *) targets+=("$1") ;;
    esac
    shift
  done
  if [[ ! -e build/fuzz/build.ninja || CMakePresets.json -nt build/fuzz/build.ninja ]]; then cmake --preset fuzz >&2; fi
  if ((${#targets[@]} == 0)); then
    mapfile -t targets < <(ninja -C build/fuzz -t targets all |
      sed -n -e 's/^\(fuzz_[a-z0-9_]*\): phony$/\1/p' -e 's/^\([a-z0-9_]*_fuzz\): phony$/\1/p' | sort)
  fi
  cmake --build build/fuzz --target "${targets[@]}" >&2
  for target in "${targets[@]}"; do
    say "fuzzing $target for $seconds s"
    row=$(fuzz_one "$target" "$seconds") || status=1
    say "$row"
    rows+=("$row")
  done
  printf '%-22s %12s %9s  %s\n' target executions seconds found
  printf '%s\n' "${rows[@]}"
  return $status
}

# ---- commands ----

command=${1:-help}
(($#)) && shift
case $command in
  setup) need "${build_packages[@]}" "${test_packages[@]}" || exit 1 ;;
  build) need_for_build && build "${1:-release}" ;;
  test) run_tests "$@" ;;
  bench)
    need_for_build
    build release lrpc-bench
    (($#)) || set -- all
    exec build/release/bench/lrpc-bench "$@"
    ;;
  model)
    need_for_build && need spin || die "the models need it"
    tests/model/check.sh --record
    prove
    ;;
  coverage) need_for_tests && need "${coverage_packages[@]}" && coverage ;;
  fuzz)
    need_for_build && need "${fuzz_packages[@]}" || die "fuzzing needs them"
    if [[ ${1:-} == --planted ]]; then
      tests/fuzz/finds.sh "${@:2}"
    else
      fuzz "$@"
    fi
    ;;
  fmt) need "${format_packages[@]}" && format ;;
  lint) need_for_build && need "${lint_packages[@]}" && lint ;;
  install)
    case ${1:-} in
      --prefix=?*) prefix=${1#--prefix=} ;;
      --prefix) prefix=${2:-} ;;
      *) prefix= ;;
    esac
    [[ -n $prefix ]] || die "install where? ./do install --prefix P"
    [[ $prefix == /* ]] || prefix=$called_in/$prefix
    need_for_build
    build release
    umask 022 # What is installed is for every user.
    cmake --install build/release --prefix "$prefix"
    ;;
  clean) rm -rf build ;;
  help | -h | --help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
