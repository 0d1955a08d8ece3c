#!/usr/bin/env bash
# Which labels and cases `tests/run --changed` runs, in a small repository with stand-ins for ninja, ctest and the test
# programs. SOURCE_TREE BUILD
set -euo pipefail
source_tree=$1
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
unset CI ROUX_DEPS ROUX_PRESET
export GIT_CONFIG_GLOBAL=/dev/null ROUX_SKIP_BUILD=1 LC_ALL=C work PATH=$work/bin:$PATH
tree=$work/tree
mkdir -p "$work/bin" "$tree"/{.deps,.deps-arrow,build/dev/bin,docs,schemas/loss,components/loss} \
  "$tree"/runner/{cmake,store,query} \
  "$tree"/tests/{ci,runner/store,runner/query,components/loss}
cd "$tree"
cp "$source_tree"/runner/cmake/{setup,changes}.sh runner/cmake
cp "$source_tree/tests/run" tests
cp "$source_tree/tests/ci/changed.sh" tests/ci
touch .deps{,-arrow}/roux-pins.txt runner/cmake/{libtorch,arrow,debian-packages}.txt docs/style.md \
  schemas/loss/mse.json \
  runner/{store,query}/a.{cpp,h} runner/query/b.cpp tests/runner/{store/log,query/a,query/b}_test.cpp \
  tests/components/loss/mse_test.cpp tests/runner/store/rows.csv roux
printf '/build\n/.deps*\n' >.gitignore
cat >tests/CMakeLists.txt <<'END'
concerns(.             tidy)
concerns(roux          cli)
concerns(docs          tidy)
concerns(components    torch)
concerns(runner/store  fast ranks)
concerns(runner/query  fast)
concerns(runner/cmake  fast torch)
concerns(schemas       fast torch)
concerns(tests/runner  fast)
END
cat >build/dev/catch_tests.txt <<'END'
fast fast tests_fast ~[golden]~[.]
fast_postgres fast tests_fast [postgres]
torch torch tests_torch ~[.]
golden golden tests_torch [golden]
END
# A test program has two cases for each tag that a file has given.
cat >build/dev/bin/tests_fast <<'END'
#!/bin/sh
[ "$1" = -# ] || exit 9
case $2,$3 in
  --list-test-names-only,*postgres*) exit 0 ;;
  --list-test-names-only,*) echo "$3" | tr , '\n' | sed 'p'; exit 2 ;;
esac
echo "$2" >>"$work/ran"
[ ! -e "$work/failing" ]
END
cp build/dev/bin/tests_fast build/dev/bin/tests_torch
cat >"$work/bin/ninja" <<END
#!/bin/sh
cat <<DEPS
tests/CMakeFiles/tests_fast.dir/runner/store/log_test.cpp.o: #deps 3, deps mtime 1 (VALID)
    ../../tests/runner/store/log_test.cpp
    /usr/include/stdio.h
    ../../runner/store/a.h

tests/CMakeFiles/tests_fast.dir/runner/query/a_test.cpp.o: #deps 3, deps mtime 1 (VALID)
    $tree/tests/runner/query/a_test.cpp
    $tree/runner/query/a.h
    $tree/runner/store/a.h

tests/CMakeFiles/tests_fast.dir/runner/query/b_test.cpp.o: #deps 1, deps mtime 1 (VALID)
    ../../tests/runner/query/b_test.cpp

tests/CMakeFiles/tests_torch.dir/components/loss/mse_test.cpp.o: #deps 2, deps mtime 1 (VALID)
    ../../tests/components/loss/mse_test.cpp
    generated/loss/mse.h

DEPS
END
printf '#!/bin/sh\necho "ctest $4" >>"$work/ran"\n' >"$work/bin/ctest"
chmod +x "$work"/bin/* build/dev/bin/*
git init -qb main
commit() { git add -A && git -c user.name=t -c user.email=t@t commit -qm "$1"; }

# expect WHAT STATUS SAID RAN... [-- ARGUMENT...]: it says SAID among others, and these lines ran.
expect() {
  local what=$1 status=$2 said=$3 found=0 ran=()
  shift 3
  while [ $# -gt 0 ] && [ "$1" != -- ]; do ran+=("$1"); shift; done
  rm -f "$work/ran" && touch "$work/ran"
  tests/run --changed "${@:2}" >"$work/said" 2>&1 || found=$?
  [ $found = "$status" ] && grep -qF -- "$said" "$work/said" &&
    [ "$(cat "$work/ran")" = "$(printf '%s\n' "${ran[@]}")" ] && return
  printf 'tests/tidy/changed_test.sh: error: %s: status %s, ran:\n%s\nsaid:\n%s\n' "$what" $found \
    "$(cat "$work/ran")" "$(cat "$work/said")"
  exit 1
}

commit first
expect 'a first commit' 2 'error: no commit to compare with'
expect 'a base that is none' 2 'error: "nowhere" is no commit' -- nowhere
expect 'nothing' 0 'nothing has changed since' -- HEAD
git checkout -qb branch
echo 1 >docs/style.md
expect 'a page' 0 '  tidy, because of docs/style.md' 'ctest ^(tidy)$' -- main
commit second
echo 1 >runner/query/b.cpp
expect 'a source and its folder' 0 'b_test: it mirrors the folder of runner/query/b.cpp' \
  '~[golden]~[.][#a_test],~[golden]~[.][#b_test]' 'ctest ^(tidy)$'
expect 'what is not committed' 0 'fast: 4 cases' '~[golden]~[.][#a_test],~[golden]~[.][#b_test]' -- HEAD
git checkout -q runner
echo 1 >runner/store/a.h
expect 'a header' 0 'a_test: it includes runner/store/a.h' \
  '~[golden]~[.][#a_test],~[golden]~[.][#log_test]' 'ctest ^(ranks)$' -- HEAD
git checkout -q runner && rm runner/store/a.cpp
expect 'what is beside a header' 0 'a_test: it includes runner/store/a.h, beside runner/store/a.cpp' \
  '~[golden]~[.][#a_test],~[golden]~[.][#log_test]' 'ctest ^(ranks)$' -- HEAD
git checkout -q runner && echo 1 >schemas/loss/mse.json
expect 'a schema' 0 'mse_test: it includes schemas/loss/mse.json' '~[.][#mse_test]' -- HEAD
touch "$work/failing"
expect 'a case that fails' 1 'torch: 2 cases' '~[.][#mse_test]' -- HEAD
rm "$work/failing"
git checkout -q schemas && echo 1 >tests/runner/query/b_test.cpp && echo 1 >tests/runner/store/rows.csv
expect 'test files and their data' 0 'b_test: it has changed' \
  '~[golden]~[.][#b_test],~[golden]~[.][#log_test]' -- HEAD
git checkout -q tests && touch roux2
expect 'an untracked file of the root' 0 '  tidy, because of roux2' 'ctest ^(tidy)$' -- HEAD
rm roux2 && echo 1 >roux
expect 'a file with a row of its own' 0 '  cli, because of roux' 'ctest ^(cli)$' -- HEAD
git checkout -q roux && echo '# nothing' >>runner/cmake/setup.sh
expect 'what builds everything' 0 'torch, because of runner/cmake/setup.sh' 'ctest ^(fast|torch)$' -- HEAD
git checkout -q runner && mkdir components/ops && touch components/ops/a.cpp
expect 'what no test file mirrors' 0 'torch: no test file is concerned' -- HEAD
echo "tests/run --changed runs what a change concerns"
