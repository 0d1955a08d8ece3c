# Sourced by .ci/run: what has passed before, so that a stage whose inputs are the same does not run again.
#
# The record lies beside what is fetched (cache_folder in runner/cmake/setup.sh), so that fresh clones share it:
#   passed/STAGE/HASH   the inputs of a pass, `NAME VALUE` in each line; HASH is that of this text
#   whole               the commit at which everything passed last
#   landings            the commits that passed since then, one a line
#   unsteady            tests that failed beside others and passed alone, one a line
# Nothing is recorded of a tree that differs from its commit.
landings_max=10         # after these everything runs again
passes_kept=50          # of each stage
declare -A inputs=()    # of each stage that has some; .ci/stages.sh has the table
common_inputs=''

record_open() {
  local cache
  head=$(git rev-parse -q --verify HEAD) ||
    refuse 2 "error: $roux_root has no commit" "  hint: .ci/run proves a clone of the repository"
  cache=$(cache_folder)
  record=${cache:-$roux_root/build}/ci
  mkdir -p "$record/passed"
  head_files=$(git ls-tree -r -z --full-tree HEAD | tr '\0' '\n')  # with -z git quotes no name
  uncommitted=$(uncommitted_files)
}

uncommitted_files() { git status --porcelain --untracked-files=all --no-renames -z | tr '\0' '\n' | cut -c 4-; }

# Clean when .ci/run began, clean now, and still at the same commit.
may_record() { [ -z "$uncommitted$(uncommitted_files)" ] && [ "$(git rev-parse HEAD)" = "$head" ]; }

# inputs_of STAGE: one line for each. A path is a file, or a folder with all in it; * matches within a name.
inputs_of() {
  local path pattern files
  while IFS= read -r path; do
    pattern=${path//./[.]}
    pattern="^${pattern//\*/[^/]*}(/|\$)"
    files=$(awk -F '\t' -v pattern="$pattern" '$2 ~ pattern' <<<"$head_files")
    if awk -v pattern="$pattern" '$0 ~ pattern { found = 1 } END { exit !found }' <<<"$uncommitted"; then
      echo "$path uncommitted"
    elif [ -n "$files" ]; then
      echo "$path $(sha256sum <<<"$files" | cut -c 1-16)"
    else
      refuse 2 "error: .ci/stages.sh: the stage $1 has the input $path, and there is no such file"
    fi
  done < <(tr -s ' \n' '\n' <<<"${inputs[$1]} $common_inputs")
  echo "pins $(pins_hash)"
  echo "compiler $(${CXX:-c++} --version | head -n 1)"  # CXX may be two words
  echo "processor $(LC_ALL=C lscpu | sed -n 's/^Model name: *//p' | head -n 1)"
}

# reason_of STAGE INPUTS: why the stage has to run. Empty when it has passed with these inputs.
reason_of() {
  local passed=$record/passed/$1 last changed
  if [ -e "$passed/$(text_hash "$2")" ]; then
    touch "$passed/$(text_hash "$2")"
    return
  fi
  last=$(ls -t "$passed" 2>/dev/null | head -n 1) || true
  if [ -z "$last" ]; then
    echo "no record"
    return
  fi
  changed=$(comm -13 <(sort "$passed/$last") <(sort <<<"$2") | cut -d ' ' -f 1)
  [ "$(wc -l <<<"$changed")" -le 3 ] || changed=$(sed '3q' <<<"$changed"; echo ...)
  echo "$(xargs <<<"${changed:-table of inputs}") changed"
}

text_hash() { sha256sum <<<"$1" | cut -c 1-16; }

# note_pass STAGE INPUTS
note_pass() {
  may_record || return 0
  local passed=$record/passed/$1 old
  mkdir -p "$passed"
  printf '%s\n' "$2" >"$passed/$(text_hash "$2")"
  ls -t "$passed" | tail -n "+$((passes_kept + 1))" | while IFS= read -r old; do rm -f "$passed/$old"; done
}

# Why everything has to run, whatever its inputs; empty when nothing asks for it.
reason_for_all() {
  if [ ! -s "$record/whole" ]; then
    echo "no record that everything passed"
  elif [ ! -f "$record/landings" ]; then
    echo "the record is damaged"
  elif [ "$(wc -l <"$record/landings")" -ge $landings_max ]; then
    echo "$landings_max landings since everything ran"
  fi
}

# note_landing WHOLE: all stages that had to run have passed; WHOLE is empty when only changed inputs were tried.
note_landing() {
  may_record || return 0
  if [ -n "$1" ]; then
    : >"$record/landings"
    echo "$head" >"$record/whole"
  elif ! grep -qsxF "$head" "$record/whole" "$record/landings"; then
    echo "$head" >>"$record/landings"
  fi
}
