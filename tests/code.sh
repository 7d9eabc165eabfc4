#!/usr/bin/env bash
# code.sh: prints the hash of the code in each file, in the form of sha256sum.
#
#   code.sh <LIST     LIST: paths, one a line; relative ones start where it is called
#
# In C and C++ neither comments count nor how much space stands between two words; so a better sentence asks nobody to
# check, prove or explore the code again. A comment with NOLINT counts, as clang-tidy reads it. Other files count whole.
set -euo pipefail
work=$(mktemp -d "${TMPDIR:-/tmp}/lrpc-code.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/paths"

[[ -s $work/paths ]] || exit 0

# Each alternative takes a whole token, so that a quotation mark in a comment begins no string, nor `//` in a string a
# comment. What none of them takes is left as it is.
WORK=$work perl -ne '
  chomp;
  open my $in, "<", $_ or die "code.sh: $_: $!\n";
  my $code = do { local $/; <$in> } // "";
  if (/\.(?:h|c|cpp)$/) {
    $code =~ s{ ( //[^\n]*NOLINT[^\n]*
                | /\*(?:(?!\*/).)*NOLINT.*?\*/
                | R"([^()\s\\]*)\(.*?\)\2"
                | "(?:[^"\\\n]|\\.)*" | \x27(?:[^\x27\\\n]|\\.)*\x27
                | \b\d[\w.\x27]* )
              | ( (?: \s | //(?![^\n]*NOLINT)[^\n]* | /\*(?:(?!\*/|NOLINT).)*\*/ )+ ) }
              {$1 // ($3 =~ /\n/ ? "\n" : " ")}xsge;
    $code =~ s/^\n//;
  }
  open my $out, ">", sprintf("%s/%06d", $ENV{WORK}, ++$number) or die "code.sh: $!\n";
  print $out $code;
  close $out or die "code.sh: $!\n"' "$work/paths"

(cd "$work" && sha256sum [0-9]*) | cut -c 1-64 | paste -d ' ' - /dev/null "$work/paths"
