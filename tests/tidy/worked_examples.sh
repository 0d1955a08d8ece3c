#!/usr/bin/env bash
# worked_examples.sh SOURCE_TREE BUILD: each example of docs/writing-a-component.md touches the files that it names and
# no other. They are pasted into a copy of the tree, which then lists, explains and tests them: an installation, which
# tests/cli/install.sh builds them against, knows no component that it was not built with. The copy compiles through the
# shared compiler cache, so that only what is new costs time. One that is removed again leaves nothing.
set -euo pipefail
source_tree=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy=$work/copy
mkdir "$copy"
cd "$source_tree"
git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
  [ ! -f "$file" ] || printf '%s\n' "$file"
done | tar -cf - -T - | tar -xf - -C "$copy"
cd "$copy"
# The tests of what is there already need minutes to compile and say nothing about a new component.
find tests -name '*_test.cpp' -delete

# A code block whose first line names a file is that file, which is new.
awk '/^```[a-z]+ [^ ]+\/[^ ]+$/ { file = $2; print file; next } /^```$/ { file = "" } file { print >file }' \
  docs/writing-a-component.md >"$work/files"
[ "$(wc -l <"$work/files")" = 21 ] || {
  echo "docs/writing-a-component.md names other files:"
  cat "$work/files"
  exit 1
}
(cd "$source_tree" && while IFS= read -r file; do
  [ ! -e "$file" ] || { echo "$file: error: the example of the documentation is there already"; exit 1; }
done) <"$work/files"

deps=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")
if [ "$deps" = "$source_tree/.deps" ]; then
  ln -s "$(readlink -f "$deps")" .deps
  ln -s "$(readlink -f "$deps-arrow")" .deps-arrow
  deps=$copy/.deps
fi
build_type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$build/CMakeCache.txt")
{
  cmake --preset dev -DROUX_DEPS="$deps" -DCMAKE_BUILD_TYPE="$build_type" &&
    ninja -j "$(nproc)" -C build/dev roux roux_engine tests_torch tests_fast cli_driver write_run
} >"$work/build.log" 2>&1 || { grep -A12 -m3 -E '^FAILED:|error:|^CMake Error' "$work/build.log"; exit 1; }

bin=build/dev/bin
for component in optimizer/signum lr_scheduler/staircase model/quadratic model/masked_encoder \
                 sampler/halton tracker/tsv; do
  "$bin/roux" list "${component%/*}" | grep "^${component#*/} "
  "$bin/roux" explain "$component" >/dev/null
done
"$bin/tests_torch" '[signum],[staircase],[quadratic],[masked_encoder]'
"$bin/tests_fast" '[halton],[tsv]'
"$bin/cli_driver" tests/cli/kinds.cli
/usr/bin/python3 tests/verify/readback_tsv.py "$copy" "$copy/$bin/roux"

export ROUX_DEPS=$deps
unset CI ROUX_PRESET ROUX_SKIP_BUILD  # the copy is built as above
./roux list lr_scheduler >/dev/null
./roux list lr_scheduler >/dev/null 2>"$work/said"
[ ! -s "$work/said" ] || { cat "$work/said"; echo "error: with nothing to do, ./roux says something"; exit 1; }

# First only the .cpp file is gone, which the build names, then the schema too.
rm components/lr_scheduler/staircase.cpp
if ./roux list lr_scheduler >"$work/said" 2>&1; then echo "error: a schema without a .cpp file is linked"; exit 1; fi
grep -F 'hint: no .cpp file defines components::lr_scheduler::staircase::make(...)' "$work/said" ||
  { cat "$work/said"; exit 1; }
rm schemas/lr_scheduler/staircase.json
./roux list lr_scheduler >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
if grep staircase "$work/said"; then echo "error: a removed component is listed"; exit 1; fi
header=build/dev/generated/lr_scheduler/staircase.h
[ ! -e $header ] || { echo "error: $header is left of a removed component"; exit 1; }
./roux env >"$work/said" 2>&1 || { cat "$work/said"; echo "error: the engine does not load"; exit 1; }
