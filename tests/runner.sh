# The part of ./do that builds and runs the tests; sourced by it. docs/TESTS.md says what runs where, and why.
# shellcheck shell=bash

passed=0 failed=0 skipped=0 unsteady=0 complaints= compiling=0
long_run= # "yes" for --all
every_build= # "yes" if the tests run in all three

# ---- progress ----

# Seconds that each stage takes where nothing is known: measured on two processors, without a compiler cache. What a
# stage took the last time stands in build/.seconds.
usual_seconds="build-debug 260
test-debug 180
build-asan 250
test-asan 230
build-tsan 180
test-tsan 170"

seconds_of() { # seconds_of STAGE
  { [[ -n $long_run ]] || cat build/.seconds 2>/dev/null || true; echo "$usual_seconds"; } |
    awk -v stage="$1" '$1 == stage { print $2; exit }'
}
took() { # took STAGE SECONDS: remembers it
  [[ -z $long_run ]] || return 0
  { grep -v "^$1 " build/.seconds 2>/dev/null || true; echo "$1 $2"; } >build/.seconds.new
  mv build/.seconds.new build/.seconds
}

# awk that acts on a line as soon as it is there; mawk waits for more unless told not to.
awk_at_once=(awk)
if awk -W version 2>&1 </dev/null | grep -q mawk; then awk_at_once=(awk -W interactive); fi

stages=() # What is still to come, the present one first.

# show_progress WHAT: passes on what is read but for the lines that count, of ninja ("[12/130] ...") and of ctest
# (" 12/2000 Test ... Passed"). These become one line for each tenth, with the time that is left.
show_progress() {
  local stage later=0 expected
  expected=$(seconds_of "${stages[0]:-none}")
  for stage in "${stages[@]:1}"; do later=$((later + $(seconds_of "$stage"))); done
  "${awk_at_once[@]}" -v what="$1" -v expected="${expected:-0}" -v later="$later" \
    -v terminal="$([[ -t 2 ]] && echo 1 || echo 0)" '
    function show(done, all) {
      tenth = int(10 * done / all)
      if (tenth == shown && !terminal) return
      shown = tenth
      passed_time = systime() - began
      rest = done * 5 > all ? passed_time * (all - done) / done : expected - passed_time
      if (rest < 0) rest = 0
      printf "%s== %s: %d of %d, about %d min left%s", terminal ? "\r\033[K" : "", what, done, all,
        (rest + later + 59) / 60, terminal && done < all ? "" : "\n" >"/dev/stderr"
    }
    BEGIN { began = systime(); shown = -1 }
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), n, "/"); show(n[1], n[2]); next
    }
    match($0, /^ *[0-9]+\/[0-9]+ Test /) {
      split($0, n, /[ \/]+/); show(n[1] == "" ? n[2] : n[1], n[1] == "" ? n[3] : n[2])
      if ($0 ~ /   Passed  |\*\*\*Skipped /) next
    }
    /^ *Start +[0-9]+: / || /^Test project / || /^The following tests did not run:/ || / \(Skipped\)$/ { next }
    { print; fflush() }'
}

# ---- results ----

attribute() { # attribute NAME FILE: the number that JUnit's testsuite element gives
  tr '\n\t' '  ' <"$2" | sed -n "s/.*<testsuite [^>]*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p"
}

# complaints_of PRESET: for each failed test of the last run the command that runs it alone, with the seed that it has
# printed if it is a random one, and the last lines of what it printed, as ctest's log keeps them; first those that may
# be run again (a line that begins with "== not so").
complaints_of() {
  awk -v preset="$1" -v keep=25 -v long="${long_run:+LRPC_LONG_TESTS=1 }" '
    /^[0-9]+\/[0-9]+ Testing: / {
      name = $0; sub(/^[^:]*: /, "", name); seed = ""; count = in_order = report = inside = 0; next
    }
    /^Output:$/                  { inside = 1; count = 0; next }
    /^<end of output>$/          { inside = 0; next }
    inside && /^-+$/ && !count   { next }
    inside                       { line[count++ % keep] = $0 }
    inside && /^LRPC_TEST_SEED=[0-9]+$/ { seed = $0 " " }
    inside && /^ *[0-9]+ FAILED TESTS?$/            { in_order = 1 }
    inside && /Sanitizer|runtime error:|terminate called/ { report = 1 }
    inside                       { next }
    /^Test time = /              { time = $4 " s" }
    /^Unable to find executable/ { printf "== failed in %s: %s\n", preset, $0 }
    /^Test Failed/ {
      sub(/  # .*/, "", name)
      printf "== %s in %s after %s: %s\n", in_order && !report ? "not so" : "failed", preset, time, substr(name, 1, 200)
      alone = name
      gsub(/[.+*?()\[\]|^$]/, "\\\\&", alone)
      printf "   %s%s./do test --in %s -R \x27^%s( |$)\x27\n", seed, long, preset, alone
      for (i = count > keep ? count - keep : 0; i < count; ++i) print "   " substr(line[i % keep], 1, 300)
      count = 0
    }' "build/$1/Testing/Temporary/LastTest.log" 2>/dev/null || true
}

# A test that fails by an assertion is run twice more, alone, if they are few. One that hung, crashed or made a
# sanitizer speak never is. What then holds both times counts as passed, and is counted and named as unsteady: a fault
# to mend.
unsteady_at_most=3

# held_when_alone PRESET FAILURES COMPLAINTS ctest...: whether that is so for all tests that failed in the last run. A
# random test gets the seed with which it failed: with another one it would hold although the fault is there.
held_when_alone() {
  local preset=$1 failures=$2 said=$3 alone seed
  shift 3
  ((failures <= unsteady_at_most)) || return 1
  (($(grep -c '^== not so in ' <<<"$said") == failures)) || return 1
  # Neither ***Timeout nor ***Exception.
  (($(grep -c '\*\*\*Failed ' "build/$preset/ctest.out") == failures)) || return 1
  say "again, and alone, what failed in $preset"
  while IFS= read -r alone; do
    seed=$(grep -o 'LRPC_TEST_SEED=[0-9]*' <<<"${alone%%./do *}")
    alone=${alone#*\'}
    env ${seed:+"$seed"} "$@" -R "${alone%\'}" --no-tests=error -j 1 --repeat until-fail:2 --output-on-failure \
      </dev/null || return 1
  done < <(grep -F "./do test --in $preset -R '^" <<<"$said")
}

# ---- one build of the tests ----

# Test programs that run for minutes of processor time, and their labels: in a run of everything only if what they see
# has changed since they passed (tests/proved.sh).
long_programs="explore_test explore
stubgen_compiled_test compiled"

proved_labels() { # proved_labels PRESET: a regular expression for the labels of those that need not run
  local program label labels=
  while read -r program label; do
    tests/proved.sh holds "build/$1" "$program" || continue
    labels+=${labels:+|}$label
    say "$label: not run, for nothing that $program sees has changed since it passed"
  done <<<"$long_programs"
  echo "^(${labels:-none})\$"
}

run_ctest() { # run_ctest PRESET CTEST-ARGUMENT...: runs and adds up
  local preset=$1 report=$PWD/build/$1/ctest.xml status=0 said tests failures skips
  local at_once=$(($(nproc) < 4 ? $(nproc) * 2 : 8)) # Most tests wait most of the time.
  # What a program with threads sleeps before it exits, so that races of the exit are seen: a second if not told, which
  # was half of the time that the tests took.
  local exit_ms=50
  [[ -z $long_run ]] || exit_ms=200 at_once=$((at_once * 3 / 2)) # the longest wait for four fifths of their time
  local -a ctest
  shift
  [[ $preset == debug && -z $long_run && $# == 0 ]] && set -- -LE "$(proved_labels "$preset")"
  ctest=(env "ASAN_OPTIONS=halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}"
    "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:atexit_sleep_ms=$exit_ms:${TSAN_OPTIONS:-}")
  [[ -z $long_run ]] || ctest+=(LRPC_LONG_TESTS=1)
  [[ $preset == tsan ]] && ctest+=("${without_randomisation[@]}")
  ctest+=(ctest --test-dir "build/$preset")
  rm -f "$report"
  "${ctest[@]}" --output-on-failure -j "$at_once" --output-junit "$report" "$@" 2>&1 | tee "build/$preset/ctest.out" |
    show_progress "tests of $preset" || status=$?
  if [[ ! -s $report ]]; then
    failed=$((failed + 1)) complaints+="== $preset: ctest wrote no report"$'\n'
    return
  fi
  tests=$(attribute tests "$report")
  failures=$(attribute failures "$report")
  skips=$(($(attribute skipped "$report") + $(attribute disabled "$report")))
  # Never "all passed" when ctest says otherwise, whatever it counted.
  ((status != 0 && failures == 0)) && failures=1 && tests=$((tests + 1))
  if ((status != 0)); then
    said=$(complaints_of "$preset")
    if held_when_alone "$preset" "$failures" "$said" "${ctest[@]}"; then
      unsteady=$((unsteady + failures)) failures=0 said=${said//== not so in/== unsteady (holds when alone) in}
    fi
    complaints+=${said//== not so in/== failed in}$'\n'
  fi
  failed=$((failed + failures))
  skipped=$((skipped + skips))
  passed=$((passed + tests - failures - skips))
}

# test_preset PRESET CTEST-ARGUMENT...: a build that fails is one failed test, and the others still run.
test_preset() {
  local preset=$1 began=$SECONDS
  shift
  if (build "$preset" 2>&1 | show_progress "building $preset" >&2); then
    took "build-$preset" $((SECONDS - began))
    compiling=$((compiling + SECONDS - began)) stages=("${stages[@]:1}") began=$SECONDS
    if [[ -n $since ]]; then
      tests/affected.sh "build/$preset" "$since" >"build/$preset/affected" ||
        die "cannot tell what has changed since $since"
      say "$(tail -n 1 "build/$preset/affected" | tr ',' '\n' | sed 1,3d | wc -l) tests of $preset" \
        "can see a change since $since"
      set -- -I "$PWD/build/$preset/affected" "$@"
    fi
    run_ctest "$preset" "$@"
    took "test-$preset" $((SECONDS - began))
  else
    say "the build of $preset failed"
    failed=$((failed + 1)) complaints+="== $preset: the build failed"$'\n'
    stages=("${stages[@]:1}")
  fi
  stages=("${stages[@]:1}")
}

# ---- the command ----

# What the edit loop wants to know: every unit, and calls over every gate.
quick_tests='^(unit|golden)\.|^integration\.(conformance/EveryGate|Binding|Callbacks|Chains|InlineCalls|Revocation|'
quick_tests+='Shares|Supply|Completion|gates/(Deadlines|Cancelled|StartedCalls|OneWay|Concurrency|Death))\.|'
quick_tests+='^model\.transitions'

run_tests() {
  local presets="debug asan tsan" preset began=$SECONDS since=
  local -a arguments=() selection=()
  while (($#)); do
    case $1 in
      --no-sanitizers) presets=debug ;;
      --quick) presets=debug selection=(-R "$quick_tests") ;;
      --all) long_run=yes ;;
      --since) since=${2:?--since needs a commit} && shift ;;
      --in) presets=${2:?--in needs a build: debug, asan or tsan} && shift ;;
      --) ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  [[ $presets != "debug asan tsan" ]] || every_build=yes
  need_for_tests
  for preset in $presets; do stages+=("build-$preset" "test-$preset"); done
  for preset in $presets; do test_preset "$preset" "${selection[@]}" "${arguments[@]}"; done
  printf '%s' "$complaints"
  ((unsteady == 0)) || echo "$unsteady of those that passed did so only when run again alone: unsteady, named above"
  echo "$passed passed, $failed failed, $skipped skipped, $unsteady unsteady in $(((SECONDS - began + 30) / 60)) min" \
    "($(((compiling + 30) / 60)) of them compiling)"
  ((failed == 0))
}
