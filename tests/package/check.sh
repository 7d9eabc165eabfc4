#!/usr/bin/env bash
# check.sh BUILD PROJECT README CMAKE COMPILER GENERATOR: installs BUILD; builds and runs PROJECT, and the README's
# hello, world, against it.
set -euo pipefail
build=$1 project=$2 readme=$3 cmake=$4 compiler=$5 generator=$6

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-package.XXXXXX")
finish() {
  for process in $(jobs -p); do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT

# build_against_package SOURCE BINARY
build_against_package() {
  "$cmake" -S "$1" -B "$2" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/moved" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  "$cmake" --build "$2"
}

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
# Moved, so that nothing works only because the prefix is where it was installed to.
mv "$work/prefix" "$work/moved"
for program in lrpc lrpc-stubgen lrpcd lrpc-netd; do
  [[ -n $(find "$work/moved" -name "$program.[18]") ]] || { echo "$program has no man page"; exit 1; }
done

build_against_package "$project" "$work/build"
"$work/build/hello-server"
"$work/build/shut-in"
"$work/build/user-process"
readelf -d "$work"/build/libhello-plugin.so | grep -q NODELETE ||
  { echo "dlclose(3) takes the code away from the threads in a plug-in"; exit 1; }

# The interface's fuzzer: libFuzzer's, or the package's own driver.
"$cmake" --build "$work/build" --target hello_fuzz
if grep -q LRPC_HAVE_LIBFUZZER:INTERNAL=1 "$work/build/CMakeCache.txt"; then
  "$work/build/hello_fuzz" -runs=2500
else
  "$work/build/hello_fuzz" --seconds 1
fi

# As for another machine's processor: the package's own programs are of no use, and LRPC_STUBGEN makes the stubs.
mkdir "$work/host"
mv "$work/moved/bin/lrpc-stubgen" "$work/host"
printf '#!/bin/sh\necho "$@" >>%s/stubgen.log\nexec %s/host/lrpc-stubgen "$@"\n' "$work" "$work" >"$work/host/recorder"
printf '#!/bin/sh\necho lrpc-stubgen 0.0.9\n' >"$work/host/older"
chmod +x "$work/host/recorder" "$work/host/older"
# configure_with_stubgen PATH
configure_with_stubgen() {
  rm -rf "$work/cross"
  "$cmake" -S "$project" -B "$work/cross" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_PREFIX_PATH="$work/moved" -DLRPC_STUBGEN="$1" >"$work/cross.log" 2>&1
}
for refused in '' "$work/host/older"; do
  if configure_with_stubgen "$refused" || ! grep -q "set LRPC_STUBGEN" <(tr -s '\n ' ' ' <"$work/cross.log"); then
    cat "$work/cross.log"; echo "LRPC_STUBGEN='$refused' was not refused"; exit 1
  fi
done
configure_with_stubgen "$work/host/recorder" || { cat "$work/cross.log"; exit 1; }
"$cmake" --build "$work/cross" --target hello_interface.hello.lrpc
grep -q 'hello.lrpc --out' "$work/stubgen.log" || { echo "LRPC_STUBGEN did not make the stubs"; exit 1; }
mv "$work/host/lrpc-stubgen" "$work/moved/bin"

# The README's: each block goes into the file that the line before it begins with, and that which runs them into `run`.
mkdir "$work/readme"
awk -v to="$work/readme/" '
  /^`(hello\.lrpc|server\.cpp|client\.cpp|CMakeLists\.txt)`/ { split($0, quoted, "`"); file = quoted[2]; next }
  /, run in the folder of these four files:$/ { file = "run"; next }
  /^```/ { if (file != "" && !inside) { inside = 1 } else { inside = 0; file = "" } next }
  inside { print > (to file) }
' "$readme"
cd "$work/readme"
# Changed are the places, and how patient lrpcd and the client are: this machine may be busy.
sed -i -e "s|P=[^ ]*|P=$work/moved|" -e "s|/tmp/lrpcd.sock|$work/lrpcd.sock|" \
  -e 's|/bin/lrpcd |&--bind-timeout-ms 240000 |' run
sed -i 's|seconds(5)|seconds(240)|' client.cpp
export CXX=$compiler PATH=${cmake%/*}:$PATH
# shellcheck source=/dev/null
source ./run >run.log 2>&1 || { cat run.log; exit 1; }
grep -qx 'hello, world (1)' run.log || { cat run.log; exit 1; }

# Its client again without CMake, by pkg-config, where there is one.
if command -v pkg-config >/dev/null; then
  mkdir "$work/by_hand"
  "$work/moved/bin/lrpc-stubgen" hello.lrpc --out "$work/by_hand"
  metadata=$(find "$work/moved" -name lrpc-client.pc)
  flags=$(PKG_CONFIG_PATH=${metadata%/*} pkg-config --cflags --libs lrpc-client)
  # shellcheck disable=SC2086 # flags are words
  "$compiler" -std=c++20 -I"$work/by_hand" client.cpp -o "$work/by_hand/client" $flags
  # Without C++20 the first error says so, and not what a header of the C++ library lacks.
  # shellcheck disable=SC2086
  "$compiler" -std=c++17 -fsyntax-only -I"$work/by_hand" client.cpp $flags >"$work/older.log" 2>&1 || true
  grep -m1 'error' "$work/older.log" | grep -q 'lrpc needs C++20' ||
    { head "$work/older.log"; echo "C++17 was not refused in plain words"; exit 1; }
  said=$("$work/by_hand/client")
  [[ $said == 'hello, world (2)' ]] || { echo "the client that was made by hand said: $said"; exit 1; }
fi
