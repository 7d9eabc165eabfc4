#!/usr/bin/env bash
# command_test.sh LRPC LRPCD SERVER SEALED: the command against a nameserver and a server of its own.
set -euo pipefail
lrpc=$1 lrpcd=$2 server=$3 sealed=$4

work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-command.XXXXXX")
started=()
finish() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "not so: $*"; exit 1; }
status_of() { local status=0; "$@" >"$work/out" 2>"$work/err" || status=$?; echo $status; }

export LRPC_SOCKET=$work/lrpcd.sock
[[ $(status_of "$lrpc" list) == 1 ]] || fail "list without a nameserver fails"
grep -q "no nameserver" "$work/err" || fail "and says so"
"$lrpcd" --socket "$LRPC_SOCKET" --log-level off --bind-timeout-ms 240000 &
started+=($!)
until "$lrpc" list >/dev/null 2>&1; do sleep 0.02; done
"$server" host >/dev/null &
started+=($!)
until "$lrpc" list 2>/dev/null | grep -q '^host '; do sleep 0.02; done

env -u LRPC_SOCKET "$lrpc" list --nameserver "$LRPC_SOCKET" | grep -q '^host ' || fail "options stand behind, too"
"$lrpc" list | grep -Eq '^host +Conformance 2\.1 +[0-9]+ +[0-9]+$' || fail "list names the interface"
"$lrpc" describe host | grep -q 'interface Conformance' || fail "describe prints the declaration"
[[ $(status_of "$lrpc" --nameserver '' list) != 0 ]] || fail "an empty value stands for no default"
[[ $(status_of "$lrpc" describe nobody) == 1 ]] || fail "describe of an unknown name fails"
[[ $(status_of "$lrpc" describe host@elsewhere) == 1 ]] || fail "describe of what is no name fails"
grep -q "is not a name" "$work/err" || fail "and says so: $(cat "$work/err")"
[[ $(status_of "$lrpc" groups) == 1 ]] || fail "groups without lrpc-netd fails"
grep -q "no lrpc-netd here" "$work/err" || fail "and says so: $(cat "$work/err")"
[[ $(status_of "$lrpc" run --bind host -- "$sealed" status 0) == 125 ]] || fail "run wants --sealed"
for help in "$lrpc" "$lrpc run" "$lrpcd"; do
  $help --help >"$work/out" || fail "$help --help"
  ! grep -E '^ +--[a-z-]+ (TEXT|INT|UINT)' "$work/out" || fail "the help of $help names what each option takes"
done
for command in list "describe host"; do
  status=0
  "$lrpc" $command >/dev/full 2>"$work/err" || status=$?
  [[ $status == 1 ]] || fail "$command fails where it cannot print ($status)"
done
status=0
"$lrpc" run --sealed --bind nobody -- "$sealed" status 0 2>/dev/full || status=$?
[[ $status == 125 ]] || fail "run that cannot say why it did not start the program ends with 125, too ($status)"

status=$(status_of "$lrpc" run --sealed --bind host -- "$sealed" status 7)
if [[ $status == 125 ]] && grep -Eq 'ptrace|kernel|in place' "$work/err"; then
  echo "skipped: $(cat "$work/err")"
  exit 77
fi
[[ $status == 7 ]] || fail "run passes the exit status on ($status)"
[[ $(status_of "$lrpc" run --sealed --bind host -- "$sealed" call host) == 0 ]] || fail "a sealed program calls"
[[ ! -s $work/err ]] || fail "nothing was refused of it: $(cat "$work/err")"
[[ $(status_of "$lrpc" run --sealed --bind host -- "$sealed" refused host) == 0 ]] || fail "it goes on after refusals"
grep -q 'refused: socket ' "$work/err" || fail "refusals are named"
export SECRET=swordfish
[[ $(status_of "$lrpc" run --sealed --bind host -- "$sealed" variable SECRET) == 0 ]] ||
  fail "the environment stays outside"
outcome=$(status_of "$lrpc" run --sealed --bind host --env SECRET --env X=1 -- "$sealed" variable SECRET swordfish)
[[ $outcome == 0 ]] || fail "but for what --env names"
outcome=$(status_of "$lrpc" run --sealed --bind host --env 'X=[a,b]' -- "$sealed" variable X '[a,b]')
[[ $outcome == 0 ]] || fail "an argument in brackets stays one"
[[ $(status_of "$lrpc" run --sealed --bind host --env =1 -- "$sealed" status 0) == 125 ]] || fail "which has a name"
[[ $(status_of "$lrpc" run --sealed --bind host -- "$sealed" made-up host) == 0 ]] || fail "it may make up system calls"
(( $(wc -l <"$work/err") < 200 )) || fail "and the report stays short"
tail -n 1 "$work/err" | grep -q 'not listed' || fail "and says that it is"
[[ $(status_of "$lrpc" run --sealed --kill --bind host -- "$sealed" refused host) == 137 ]] || fail "--kill kills"
status=0
"$lrpc" run --sealed --kill --bind host -- "$sealed" refused host 2>/dev/full || status=$?
[[ $status == 137 ]] || fail "and where it cannot say so ($status)"
status=0
"$lrpc" run --sealed --bind host -- "$sealed" made-up host 2>/dev/full || status=$?
[[ $status == 0 ]] || fail "the exit status is the program's although the report cannot be printed ($status)"
[[ $(status_of "$lrpc" run --sealed --bind host -- /bin/sh) == 125 ]] || fail "a dynamic program is not started"
grep -q 'static-pie' "$work/err" || fail "and it is said how to link it"
[[ $(status_of "$lrpc" run --sealed --bind nobody -- "$sealed" status 0) == 125 ]] || fail "an unknown name"
[[ $(status_of "$lrpc" run --sealed --bind host -- "$work/no-such-program") == 125 ]] || fail "no such program"
mkfifo -m 755 "$work/fifo"
[[ $(status_of timeout 600 "$lrpc" run --sealed --bind host -- "$work/fifo") == 125 ]] || fail "a FIFO is no program"
mkdir -p "$work/early/${sealed##*/}"
outcome=$(PATH=$work/early:${sealed%/*}:$PATH status_of "$lrpc" run --sealed --bind host -- "${sealed##*/}" status 7)
[[ $outcome == 7 ]] || fail "a directory in \$PATH is no program ($(cat "$work/err"))"

"$lrpc" run --sealed --bind host -- "$sealed" loop host &
loop=$!
sleep 0.3
kill -TERM $loop
status=0
wait $loop || status=$?
[[ $status == 143 ]] || fail "a signal is passed on ($status)"
echo "all is well"
