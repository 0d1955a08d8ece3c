#!/usr/bin/env bash
# What .ci/run runs, records and says, in a small repository with stand-ins for its stages, the compiler, the processor,
# ctest and tests/run. SOURCE_TREE BUILD
set -euo pipefail
source_tree=$1
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
unset CI ROUX_DEPS ROUX_PRESET CXX
export GIT_CONFIG_GLOBAL=/dev/null XDG_CACHE_HOME=$work/cache LC_ALL=C
export work PATH=$work/bin:$PATH

# The inputs that the real table names are there, and an ordinary component is none but of what trains on devices and in
# processes; a scheduler of no stage at all.
bash "$source_tree/.ci/run" --inputs >"$work/inputs"
while read -r stage path _; do
  for file in components/optimizer/adamw.cpp components/lr_scheduler/cosine.cpp; do
    case $file in $path | $path/*) ;; *) continue ;; esac
    case "$stage $file" in ranks:\ *adamw.cpp | estimates:\ *adamw.cpp | device:\ *adamw.cpp) continue ;; esac
    echo "tests/tidy/ci_stages.sh: error: $file is an input of ${stage%:}: $path"
    exit 1
  done
done <"$work/inputs"

mkdir -p "$work"/{bin,tree/{.ci,runner/{cmake,store,query},tests/verify,components/{optimizer,kernels}}}
for program in c++ lscpu ctest; do printf '#!/bin/sh\n. "$work/%s.sh"\n' $program >"$work/bin/$program"; done
chmod +x "$work"/bin/*
echo 'echo "c++ 12.2"' >"$work/c++.sh"
echo 'echo "Model name:   Some CPU"' >"$work/lscpu.sh"
cd "$work/tree"
cp "$source_tree"/.ci/{run,record.sh,tests.sh} .ci
cp "$source_tree/runner/cmake/setup.sh" runner/cmake
touch tests/unsteady.txt runner/{store,query}/a.cpp components/{optimizer,kernels}/a.{cpp,h} \
  runner/cmake/{libtorch,cuda-link,cuda-run}.txt tests/verify/{requirements,constraints}.txt
echo /build >.gitignore
# A stage is named in $work/ran when it runs, and fails where a file asks for it.
cat >.ci/stages.sh <<'END'
always=(set-up tests)
labels=(fast)
conditional=(store headers)
inputs=([store]='runner/store' [headers]='components/*/*.h runner/query/a.cpp')
common_inputs='.ci'
ran() { echo "$1" >>"$work/ran"; [ ! -e "$work/fail-$1" ]; }
do_set_up() { ran set-up; }
do_tests() { run_tests fast; }
do_store() { ran store; }
do_headers() { ran headers; }
END
cat >tests/run <<'END'
#!/bin/sh
echo "$@" >>"$work/ran"
logs=build/dev/Testing/Temporary
[ -e "$work/failing" ] || exit 0
mkdir -p $logs
cp "$work/failing" $logs/LastTestsFailed.log
touch $logs/LastTest.log
exit 1
END
chmod +x tests/run
git init -qb main
commit() { git add -A && git -c user.name=t -c user.email=t@t commit -qm "$1"; }

# expect WHAT STATUS RAN LINE... -- [ARGUMENT...]: .ci/run with the arguments ends with the status, ran these stages and
# printed these lines, times and repeated blanks aside.
expect() {
  local what=$1 status=$2 ran=$3 found=0 lines=()
  shift 3
  while [ "$1" != -- ]; do lines+=("$1"); shift; done
  shift
  rm -f "$work/ran" && touch "$work/ran"
  .ci/run "$@" >"$work/said" 2>&1 || found=$?
  sed -E 's/ +[0-9]+ s( |$)/ /; s/ +/ /g; s/^ | $//g' "$work/said" >"$work/lines"
  local line missing=''
  for line in "${lines[@]}"; do grep -qxF -- "$line" "$work/lines" || missing+=" \"$line\""; done
  [ $found = "$status" ] && [ "$(xargs <"$work/ran")" = "$ran" ] && [ -z "$missing" ] && return
  printf 'tests/tidy/ci_stages.sh: error: %s: status %s, ran %s, missing%s\n' "$what" $found "$(xargs <"$work/ran")" \
    "${missing:- nothing}"
  cat "$work/said"
  exit 1
}

commit first
expect 'help' 0 '' '.ci/run --all ranks the tests with several processes, whether or not something changed' -- --help
expect 'a flag that is none' 2 '' 'error: .ci/run has no flag "--al"' -- --al
expect 'a stage that is none' 2 '' 'error: no stage is called "stor"' -- stor
expect 'inputs of a stage that always runs' 2 '' 'error: the stage tests runs each time, whatever its inputs' -- \
  --inputs tests

touch "$work/fail-store"
expect 'a failure' 1 'set-up fast store headers' 'store FAILED no record that everything passed' \
  'headers passed no record that everything passed' --
rm "$work/fail-store"
expect 'everything, as it has never passed' 0 'set-up fast store headers' \
  'store passed no record that everything passed' --
expect 'nothing has changed' 0 'set-up fast' 'set-up passed' 'tests passed' 'store unchanged' 'headers unchanged' --
expect 'all that is asked for' 0 'set-up fast store headers' 'store passed --all' -- --all
expect 'a stage by its name' 0 'set-up' 'store unchanged' -- store
expect 'a stage by its name, in any case' 0 'set-up store' 'store passed --all' -- --all store
expect 'a part of the tests' 0 'set-up fast' 'fast passed' -- fast

echo 1 >runner/store/a.cpp && commit second
expect 'a changed input' 0 'set-up fast store' 'store passed runner/store changed' 'headers unchanged' --
echo 1 >components/optimizer/a.cpp && commit third
expect 'what is no input' 0 'set-up fast' 'store unchanged' 'headers unchanged' --
echo 1 >components/kernels/a.h && commit fourth
expect 'an input by its pattern' 0 'set-up fast headers' 'headers passed components/*/*.h changed' --
git revert -n HEAD~2 && commit fifth
expect 'inputs that have passed before' 0 'set-up fast' 'store unchanged' --

echo 2 >runner/store/a.cpp
expect 'an uncommitted change' 0 'set-up fast store' 'store passed runner/store changed' 'headers unchanged' --
expect 'of which nothing is recorded' 0 'set-up fast store' 'store passed runner/store changed' --
commit sixth && touch components/optimizer/b.h
expect 'an untracked file' 0 'set-up fast store headers' 'headers passed components/*/*.h changed' --
rm components/optimizer/b.h
expect 'beside which nothing is recorded' 0 'set-up fast store' 'headers unchanged' --
touch "$work/fail-headers" && echo 3 >runner/query/a.cpp && commit seventh
expect 'a failure of one stage' 1 'set-up fast headers' 'headers FAILED runner/query/a.cpp changed' 'store unchanged' --
expect 'which is not forgotten' 1 'set-up headers' 'headers FAILED runner/query/a.cpp changed' -- headers
rm "$work/fail-headers"
expect 'once it is mended' 0 'set-up headers' 'headers passed runner/query/a.cpp changed' -- headers

echo 'echo "c++ 13.1"' >"$work/c++.sh"
expect 'another compiler' 0 'set-up fast store headers' 'store passed compiler changed' --
echo 'echo "Model name:   Other CPU"' >"$work/lscpu.sh"
expect 'another processor' 0 'set-up fast store headers' 'headers passed processor changed' --
expect 'each of which has passed' 0 'set-up fast' 'store unchanged' --
echo aim >tests/verify/requirements.txt && commit eighth
expect 'other pins' 0 'set-up fast store headers' 'store passed no record that everything passed' --

expect 'a landing that was counted' 0 'set-up fast' 'store unchanged' --
for i in $(seq 10); do
  git -c user.name=t -c user.email=t@t commit -q --allow-empty -m "landing $i"
  expect "landing $i" 0 'set-up fast' 'store unchanged' --
done
expect 'after ten landings' 0 'set-up fast store headers' 'store passed 10 landings since everything ran' --
expect 'and not after that' 0 'set-up fast' 'store unchanged' --

echo '12:cli/runs' >"$work/failing"
echo true >"$work/ctest.sh"
expect 'a test that passes alone' 0 'set-up fast' 'tests passed' \
  "cli/runs failed beside other tests and passed alone at $(git rev-parse --short=8 HEAD)" --
expect 'and has no second run again' 1 'set-up fast' 'tests FAILED' --
grep -qF 'a test has had one before: cli/runs' "$work/said"
echo '7:cli/other' >"$work/failing"
echo '# a comment' >tests/unsteady.txt
echo 'cli/other  a server is slow to start' >>tests/unsteady.txt && commit listed
expect 'a test that is listed' 1 'set-up fast' 'tests FAILED' --
echo '8:cli/third' >"$work/failing"
echo false >"$work/ctest.sh"
expect 'a test that fails alone, too' 1 'set-up fast' 'tests FAILED' --
rm "$work/failing"

HOME='' XDG_CACHE_HOME='' expect 'without a cache' 0 'set-up fast store headers' \
  'store passed no record that everything passed' --
HOME='' XDG_CACHE_HOME='' expect 'the record lies in the checkout' 0 'set-up fast' 'store unchanged' --
echo ".ci/run runs what has to run, and records what passed"
