# Sourced by .ci/run: runs the tests of some labels, and once more, alone, those that failed.
unsteady=()  # what failed and passed alone in this run, as lines of tests/unsteady.txt

# run_tests LABEL...: a test that fails beside others gets a second run, alone, once in its life. What passes then is a
# race to be mended, in the test or in roux, but no fault of the change that is being proved. A test that is known for
# it fails.
run_tests() {
  local logs=build/dev/Testing/Temporary names known name
  rm -f $logs/LastTestsFailed.log
  tests/run "$@" && return
  [ -s $logs/LastTestsFailed.log ] || return 1  # setting up failed, not a test
  names=$(cut -d : -f 2- $logs/LastTestsFailed.log | sort)
  known=$(comm -12 <(echo "$names") <(known_unsteady | sort -u))
  if [ -n "$known" ]; then
    say "no second run, as a test has had one before: $(xargs <<<"$known")" \
      "(tests/unsteady.txt, $record/unsteady): mend the test, or what it tests"
    return 1
  fi
  cp $logs/LastTest.log $logs/FirstTest.log
  say "running alone what failed: $(xargs <<<"$names")"
  ctest --test-dir build/dev --rerun-failed -j 1 --output-on-failure --no-tests=error || return 1
  for name in $names; do
    unsteady+=("$name  failed beside other tests and passed alone at ${head:0:8}")
    if may_record; then echo "$name" >>"$record/unsteady"; fi
  done
}

known_unsteady() {
  awk '{ sub(/#.*/, ""); sub(/\r$/, "") } NF { print $1 }' tests/unsteady.txt
  cat "$record/unsteady" 2>/dev/null || true
}
