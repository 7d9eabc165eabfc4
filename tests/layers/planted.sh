# To be sourced: what a check of docs/ARCHITECTURE.md and its test with a planted fault have in common. The caller sets
# `planted`, which is empty if nothing is planted.

# table FILE SED: FILE, changed by the command SED if a fault is planted.
table() {
  if [[ -n $planted ]]; then sed "$2" "$1"
  else cat "$1"; fi
}

# conclude PATTERN...: runs `check`. With a planted fault it must fail and print, for each PATTERN, a line like that.
conclude() {
  local found pattern
  if [[ -z $planted ]]; then
    check
    return
  fi
  if found=$(check); then
    echo "no planted fault was found"
    return 1
  fi
  echo "$found"
  for pattern; do grep -q "$pattern" <<<"$found" || return 1; done
}
