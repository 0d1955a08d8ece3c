# Sourced by tests/run: which tests a change can affect, and those alone.

# run_changed [BASE]: the exit status is 1 when a test fails.
run_changed() {
  local since files label path cases status=0 chosen=()
  cd "$roux_root"
  . runner/cmake/changes.sh
  if [ $# = 0 ]; then
    since=$(commit_to_compare origin/main)
    [ -n "$since" ] || refuse 2 "error: no commit to compare with" "  hint: tests/run runs everything"
  else
    since=$(git merge-base HEAD "$1" 2>/dev/null) ||
      refuse 2 "error: \"$1\" is no commit, or has none in common with HEAD" "  hint: tests/run --changed main"
  fi
  files=$({ git diff -z --name-only --no-renames "$since" && git ls-files -z --others --exclude-standard; } |
    tr '\0' '\n')
  files=$(sort -u <<<"$files" | sed '/^$/d')
  if [ -z "$files" ]; then
    say "nothing has changed since $(git rev-parse --short "$since")"
    return 0
  fi
  say "$(wc -l <<<"$files") changed files since $(git rev-parse --short "$since")"

  local concerned
  concerned=$(concerned_labels <<<"$files")
  for label in "${labels[@]}"; do
    path=$(awk -F '\t' -v label="$label" '$1 == label { print $2; exit }' <<<"$concerned")
    [ -n "$path" ] || continue
    chosen+=("$label")
    say "  $label, because of $path"
  done
  if [ ${#chosen[@]} = 0 ]; then
    say "they concern no test"
    return 0
  fi
  setup_packages build test
  setup_libtorch
  case " ${chosen[*]} " in *" verify "* | *" readback "*) setup_verify ;; esac
  setup_build "${chosen[@]/#/check_}"

  # Whatever compiles, starts or feeds all cases concerns all of them.
  local whole='' rest=() everything program
  everything='^((tests/)?CMakeLists[.]txt|CMakePresets[.]json|runner/cmake/'
  everything+='|tests/(fixtures|programs)/|recipes/|schemas/(aliases[.]json|kinds[.]json|gen/))'
  if grep -qE "$everything" <<<"$files"; then whole=1; fi
  for label in "${chosen[@]}"; do
    program=tests_torch  # of device, too
    case $label in fast) program=tests_fast ;; torch | device) ;; *) program='' ;; esac
    if [ -n "$whole" ] || [ -z "$program" ]; then
      rest+=("$label")
      continue
    fi
    cases=$(ninja -C "$roux_build" -t deps | concerned_cases "$program" "$files") ||
      refuse 1 "error: what the files of $program include cannot be read"
    run_cases "$label" "$cases" || status=1
  done
  if [ ${#rest[@]} -gt 0 ]; then
    ctest --test-dir "$roux_build" -L "^($(IFS='|'; echo "${rest[*]}"))\$" -j "$(nproc)" --output-on-failure \
      --no-tests=error || status=1
  fi
  return $status
}

# Changed paths in; out come `LABEL PATH` with a tab between, by the rows concerns(PATH LABEL...).
concerned_labels() {
  awk 'NR == FNR {
         if (sub(/^concerns\(/, "")) { sub(/\).*/, ""); path = $1; $1 = ""; labels[path] = $0 }
         next
       }
       {
         for (at = $0; at != "" && !(at in labels); ) if (!sub("/[^/]*$", "", at)) at = ""
         if (at == "") at = "."  # a folder without a row, too: the tidy program refuses it
         count = split(labels[at], some, " ")
         for (i = 1; i <= count; ++i) print some[i] "\t" $0
       }' tests/CMakeLists.txt -
}

# concerned_cases PROGRAM FILES: what `ninja -t deps` prints in; out come the test files of the program that the changed
# files concern, `STEM REASON` with a tab between.
concerned_cases() {
  local objects="/$1(_with_torch)?[.]dir/"
  awk -v root="$roux_root/" -v build="$roux_build/" -v program="$objects" -v files=<(printf '%s\n' "$2") '
    function folder(path) { return sub("/[^/]*$", "", path) ? path : "" }
    # A path of the log, from the root of the tree or, for what is generated, from that of the build.
    function plain(path) {
      if (index(path, build) == 1) path = substr(path, length(build) + 1)
      if (index(path, root) == 1) path = substr(path, length(root) + 1)
      sub("^([.][.]/)+", "", path)
      return path
    }
    function note(why) { if (source != "" && !(source in reason)) { reason[source] = why; order[++count] = source } }
    BEGIN {
      while ((getline path <files) > 0) changed[++number] = path  # an argument would have to be short
      for (i = 1; i <= number; ++i) {
        path = changed[i]
        direct[path] = path
        if (path ~ "[.](cpp|inl)$") { header = path; sub("[.][a-z]+$", ".h", header); beside[header] = path }
        # schemas/optimizer/adamw.json makes generated/optimizer/adamw.h
        if (path ~ "^schemas/.*[.]json$") {
          header = path; sub("^schemas", "generated", header); sub("json$", "h", header); direct[header] = path
        }
      }
    }
    /^[^ ].*: #deps / { ours = $0 ~ program; source = ""; next }
    !ours { next }
    {
      path = plain($1)
      if (path ~ "^tests/.*_test[.]cpp$") { source = path; tested[folder(path)] = 1; all[path] = 1 }
      if (path in direct) note(direct[path] == source ? "it has changed" : "it includes " direct[path])
      if (path in beside) note("it includes " path ", beside " beside[path])
    }
    END {
      for (i = 1; i <= number; ++i) {
        path = changed[i]
        if (path ~ "^tests/.*[.](cpp|h|inl)$") continue  # found by what includes it
        at = folder(path)
        if (at !~ "^tests(/|$)") at = "tests/" at
        while (at != "tests" && at != "" && !(at in tested)) at = folder(at)
        if (at in tested) mirror[at] = path
      }
      for (path in all) if (!(path in reason) && folder(path) in mirror) {
        source = path
        note("it mirrors the folder of " mirror[folder(path)])
      }
      for (i = 1; i <= count; ++i) {
        stem = order[i]; sub(".*/", "", stem); sub("[.]cpp$", "", stem)
        print stem "\t" reason[order[i]]
      }
    }' | sort -u
}

# run_cases LABEL FILES: the tests of the label, each with its tags, of these test files alone. With -# Catch2 takes the
# name of a file for a tag.
run_cases() {
  local label=$1 files=$2 status=0 test of program tags spec stem cases listing
  if [ -z "$files" ]; then
    say "$label: no test file is concerned"
    return 0
  fi
  say "$label: $(wc -l <<<"$files") test files"
  sed 's/^/roux:   /; s/\t/: /' <<<"$files" >&2
  while read -r test of program tags; do
    [ "$of" = "$label" ] || continue
    spec=''
    while IFS=$'\t' read -r stem _; do spec+=${spec:+,}"$tags[#$stem]"; done <<<"$files"
    program=$roux_build/bin/$program
    listing=0
    cases=$("$program" -# --list-test-names-only "$spec" | sed '/^$/d' | wc -l) || listing=$?  # the number of cases
    if [ "$cases" = 0 ]; then
      [ $listing = 0 ] || { say "$test: $program does not list its cases"; status=1; }
      continue
    fi
    say "$test: $cases cases"
    "$program" -# "$spec" </dev/null || status=1
  done < <(sed 's/  *$//' "$roux_build/catch_tests.txt")
  return $status
}
