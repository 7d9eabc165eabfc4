#!/usr/bin/env bash
# beside_load.sh COMMAND...: runs the command on a machine that is loaded three times over, and takes the processors
# away from all of it for 0.3 to 3 s now and then, as a busy host does. Ends with the command's status.
#
#   LOAD=n      endless loops beside it (default: three for each processor)
#   FREEZE=no   only the load
#
# The command is frozen as a control group (cgroup2, or the freezer of cgroup v1), so that debuggers and parents among
# it see nothing of it. Without root, its process group gets SIGSTOP and SIGCONT.
set -uo pipefail

loops=()
for ((i = 0; i < ${LOAD:-$(($(nproc) * 3))}; ++i)); do
  (while :; do :; done) &
  loops+=($!)
done

group=
make_group() {
  local root kind
  while read -r root kind; do
    [[ $kind == cgroup2 || $root == */freezer ]] || continue
    group=$root/lrpc-load.$$
    mkdir "$group" 2>/dev/null || { group= && continue; }
    [[ -e $group/cgroup.freeze || -e $group/freezer.state ]] && return
    rmdir "$group" && group=
  done < <(awk '$3 ~ /^cgroup/ { print $2, $3 }' /proc/mounts)
}
[[ ${FREEZE:-} == no ]] || make_group

switch() { # switch 1: frozen, switch 0: not
  if [[ -e $group/cgroup.freeze ]]; then
    echo "$1" >"$group/cgroup.freeze"
  elif [[ -e $group/freezer.state ]]; then
    (($1)) && echo FROZEN >"$group/freezer.state" || echo THAWED >"$group/freezer.state"
  else
    (($1)) && kill -STOP -- "-$command" || kill -CONT -- "-$command"
  fi 2>/dev/null
}

set -m # The command is a process group of its own.
{
  [[ -z $group ]] || echo "$BASHPID" >"$group/cgroup.procs"
  exec "$@"
} &
command=$!
set +m

finish() {
  kill "${loops[@]}" "${freezer:-}" 2>/dev/null
  switch 0
  [[ -z $group ]] || { sleep 0.2 && rmdir "$group" 2>/dev/null; }
}
trap finish EXIT
trap 'kill -TERM -- "-$command"; exit 130' INT TERM

if [[ ${FREEZE:-} != no ]]; then
  while sleep "$((RANDOM % 7 + 1)).$((RANDOM % 10))"; do
    switch 1
    sleep "$((RANDOM % 3)).$((RANDOM % 7 + 3))"
    switch 0
  done &
  freezer=$!
fi
wait "$command"
