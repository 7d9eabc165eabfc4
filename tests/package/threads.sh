#!/usr/bin/env bash
# threads.sh BUILD PROJECT CMAKE COMPILER GENERATOR: installs BUILD; builds PROJECT with ThreadSanitizer against it, and
# runs it: server and client in one process, and in two. It fails on a report, and where there is none of a race that is
# one. Exit status 77: there is no ThreadSanitizer here.
set -euo pipefail
build=$1 project=$2 cmake=$3 compiler=$4 generator=$5

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-threads.XXXXXX")
started=()
finish() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT

# Older ThreadSanitizers do not find their memory where the kernel randomises addresses by many bits.
around=()
if setarch -R true 2>/dev/null; then around=(setarch -R); fi
echo 'int main() {}' >"$work/none.cpp"
if ! "$compiler" -fsanitize=thread "$work/none.cpp" -o "$work/none" 2>/dev/null || ! "${around[@]}" "$work/none"; then
  echo "no ThreadSanitizer here"
  exit 77
fi

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
"$cmake" -S "$project" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
"$cmake" --build "$work/build"
threads=("${around[@]}" "$work/build/threads")

"${threads[@]}"  # a report is exit status 66

export LRPC_SOCKET=$work/lrpcd.sock
"$work/prefix/bin/lrpcd" --socket "$LRPC_SOCKET" --bind-timeout-ms 240000 &
started+=($!)
until "$work/prefix/bin/lrpc" list >/dev/null 2>&1; do
  kill -0 "${started[-1]}"  # else it has ended
  sleep 0.02
done
mkfifo "$work/end"
"${threads[@]}" serve work <"$work/end" &
server=$!
started+=("$server")
exec 3>"$work/end"
"${threads[@]}" call work
exec 3>&-
wait "$server"

for race in race race-counted; do
  if "${threads[@]}" $race >"$work/race.log" 2>&1; then
    echo "$race: a race of the program's own was not reported"
    exit 1
  fi
  grep -q "ThreadSanitizer: data race" "$work/race.log"
done
