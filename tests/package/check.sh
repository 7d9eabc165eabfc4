#!/usr/bin/env bash
# check.sh BUILD PROJECT CMAKE COMPILER GENERATOR: installs BUILD and builds and runs PROJECT against it.
set -euo pipefail
build=$1 project=$2 cmake=$3 compiler=$4 generator=$5

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-package.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
# Moved, so that nothing works only because the prefix is where it was installed to.
mv "$work/prefix" "$work/moved"
"$cmake" -S "$project" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/moved" \
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
"$cmake" --build "$work/build"
"$work/build/hello-server"
