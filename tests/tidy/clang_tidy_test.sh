#!/usr/bin/env bash
# Which sources runner/cmake/clang_tidy.sh hands to clang-tidy, in a small repository with a stand-in for it.
# SOURCE_TREE BUILD
set -euo pipefail
source_tree=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,tree/{build,runner/{cmake,core},components}}
cat >"$work/bin/clang-tidy" <<EOF
#!/bin/sh
for source; do :; done
echo "\$source" >>"$work/handed"
! grep -q wrong "\$source"
EOF
chmod +x "$work/bin/clang-tidy"
export PATH=$work/bin:$PATH GIT_CONFIG_GLOBAL=/dev/null
cd "$work/tree"
cp "$source_tree"/runner/cmake/{changes,clang_tidy}.sh runner/cmake
commit() { git add -A && git -c user.name=t -c user.email=t@t commit -qm "$1"; }
{
  separator='['
  for file in components/linear runner/core/node runner/core/text runner/core/log; do
    [ "$file" = components/linear ] && flags=' -fopenmp ' || flags=' '
    printf '%s{\n  "command": "c++%s-c %s.cpp",\n  "file": "%s/%s.cpp"\n}' "$separator" "$flags" "$file" "$PWD" "$file"
    separator=,
    seq 20 >"$file.cpp"
  done
  # CMake compiles some sources in one file, which includes them.
  united=$PWD/build/Unity/unity_0.cxx
  printf ',{\n  "command": "c++ -c %s",\n  "file": "%s"\n}]\n' "$united" "$united"
} >build/compile_commands.json
mkdir build/Unity
seq 20 >runner/core/united.cpp
printf '#include "%s/runner/core/united.cpp"\n' "$PWD" >"$united"
git init -qb main

# expect WHAT STATUS LAST_LINE SOURCE...: what it says at the end, and the sources that were handed over, in order.
expect() {
  local what=$1 status=$2 last=$3 found=0 said
  shift 3
  rm -f "$work/handed" && touch "$work/handed"
  said=$(bash runner/cmake/clang_tidy.sh build main) || found=$?
  [ "$found" = "$status" ] && [ "$(tail -n 1 <<<"$said")" = "$last" ] &&
    [ "$(sort "$work/handed" | xargs)" = "$(printf '%s\n' "$@" | sort | xargs)" ] && return
  printf 'tests/tidy/clang_tidy_test.sh: error: %s: status %s, handed over: %s\n%s\n' "$what" "$found" \
    "$(xargs <"$work/handed")" "$said"
  exit 1
}

commit first
expect 'a first commit' 0 'no commit to compare with: nothing is checked'
echo line | tee -a runner/core/{node,united}.cpp >runner/core/uncompiled.cpp && commit second
expect 'the last commit of the base' 0 'clang-tidy: 2 of 2 changed sources checked' runner/core/{node,united}.cpp
git checkout -qb branch
echo line >>components/linear.cpp && commit third
echo wrong >>runner/core/text.cpp && git rm -q runner/core/log.cpp && commit fourth
expect 'all commits of a branch' 1 'clang-tidy: 2 of 2 changed sources checked' \
  components/linear.cpp runner/core/text.cpp
export CLANG_TIDY_FILES=1
expect 'no more than a number, without LibTorch first' 1 'clang-tidy: 1 of 2 changed sources checked' \
  runner/core/text.cpp
export CLANG_TIDY_SECONDS=0
expect 'no time left' 0 'clang-tidy: 0 of 2 changed sources checked'
