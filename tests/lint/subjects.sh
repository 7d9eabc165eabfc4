#!/usr/bin/env bash
# No commit has a subject of more than 72 characters, which would be cut in lists.
#
#   subjects.sh            exit 0: none has, 1: prints those that have, 77: no git repository with its history is here
#   subjects.sh planted    that it finds one, in a repository of its own
set -euo pipefail
export LC_ALL=C.UTF-8

too_long() { # too_long REVISIONS: prints the commits
  local commit subject
  git log --no-merges --format='%h %s' "$1" | while read -r commit subject; do
    ((${#subject} <= 72)) || echo "$commit has a subject of ${#subject} characters: $subject"
  done
}

cd "$(dirname "$0")"
if [[ ${1:-} == planted ]]; then
  command -v git >/dev/null || { echo "SKIPPED: git is not installed" && exit 77; }
  repository=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-subjects.XXXXXX")
  trap 'rm -rf "$repository"' EXIT
  cd "$repository"
  git init -q
  commit() { git -c user.name=a -c user.email=a@b commit -q --allow-empty -m "$1"; }
  commit "$(printf 'é%.0s' {1..72})"
  [[ -z $(too_long HEAD) ]] || { echo "72 characters are refused" && exit 1; }
  commit "$(printf 'é%.0s' {1..73})"
  [[ $(too_long HEAD) == *" of 73 characters: "* ]] || { echo "73 characters are not found" && exit 1; }
  exit 0
fi

base=a1a6af72 # The last one that had.
if ! git rev-parse -q --verify "$base^{commit}" &>/dev/null; then
  echo "SKIPPED: no git repository with $base is here"
  exit 77
fi
found=$(too_long "$base..HEAD")
[[ -z $found ]] || { echo "$found" && exit 1; }
