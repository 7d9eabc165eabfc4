#!/usr/bin/env bash
# The inputs that are kept for each fuzz target, a file an input, packed into corpus/TARGET.tar.gz.
#
#   corpus.sh unpack TARGET FOLDER   puts them into the folder; nothing, if none are kept
#   corpus.sh keep TARGET FILE...    adds inputs and packs them again
set -euo pipefail
usage() { sed -n 's/^# \{0,1\}//; 2,5p' "$0" >&2 && exit 2; }
(($# >= 3)) || usage
home=$(realpath "$(dirname "$0")")/corpus
packed=$home/$2.tar.gz

unpack() { # unpack FOLDER
  mkdir -p "$1"
  [[ ! -e $packed ]] || tar --extract --gzip --file "$packed" --directory "$1"
}

case $1 in
  unpack) unpack "$3" ;;
  keep)
    work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-corpus.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    unpack "$work/kept"
    cp -- "${@:3}" "$work/kept"
    # The same inputs give the same archive.
    ls "$work/kept" | tar --create --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 --directory "$work/kept" \
      --files-from - | gzip --no-name --best >"$work/packed"
    mkdir -p "$home" && mv "$work/packed" "$packed"
    ;;
  *) usage ;;
esac
