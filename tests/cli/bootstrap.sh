#!/usr/bin/env bash
# What setup.sh says of a build, and where it puts what it fetches, tried on a tree of two files with the scripts and
# the tool chain of this one.
set -euo pipefail
source_tree=$1
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
export CCACHE_DIR=$work/ccache LC_ALL=C
unset CI ROUX_PRESET ROUX_SKIP_BUILD

tree=$work/tree
mkdir -p "$tree/runner/cmake"
cp "$source_tree"/runner/cmake/{setup.sh,toolchain.cmake} "$tree/runner/cmake/"
cat >"$tree/CMakePresets.json" <<'EOF'
{"version": 6, "configurePresets": [
  {"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev",
   "cacheVariables": {"CMAKE_BUILD_TYPE": "Dev"}}]}
EOF
cat >"$tree/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(tree LANGUAGES C CXX)
include(runner/cmake/toolchain.cmake)
add_library(engine SHARED engine.cpp)
EOF

# build STATUS TEXT...: its exit status, and what it says.
build() {
  local wanted=$1 status=0 text
  shift
  # A shell of its own, in which `set -e` holds as it does in ./roux.
  bash -c '. "$1"; setup_build engine' bash "$tree/runner/cmake/setup.sh" >"$work/said" 2>&1 || status=$?
  for text in "$@"; do
    grep -qF -- "$text" "$work/said" || { cat "$work/said"; echo "error: it does not say: $text"; exit 1; }
  done
  [ $status = "$wanted" ] || { cat "$work/said"; echo "error: exit status $status instead of $wanted"; exit 1; }
}

echo 'int size() { return sise; }' >"$tree/engine.cpp"
build 1 "engine.cpp:1:21: error: " "error: the build failed" \
  "  hint: the whole output is in $tree/build/dev/build.log"

echo 'int size() { return 1; }' >"$tree/engine.cpp"
build 0
build 0
[ ! -s "$work/said" ] || { cat "$work/said"; echo "error: a build with nothing to do says something"; exit 1; }

echo 'namespace components::kind::part { int make(int); } int size() { return components::kind::part::make(1); }' \
  >"$tree/engine.cpp"
build 1 "undefined reference to \`components::kind::part::make(int)'" \
  "  hint: no .cpp file defines components::kind::part::make(...), which schemas/*/part.json declares"

# A warning is an error in CI only, whoever compiled the file first.
echo 'static int unused() { return 1; } int size() { return 1; }' >"$tree/engine.cpp"
build 0
export CI=true
rm -rf "$tree/build"
build 1 "'int unused()' defined but not used" "error: the build failed"
if command -v ccache >/dev/null; then
  ccache --print-stats | awk '/^(direct|preprocessed)_cache_hit/ {hits += $2} END {exit hits != 1}' ||
    { ccache -s; echo "error: CI does not use what was compiled before"; exit 1; }
  CCACHE_DISABLE=1 build 1 "'int unused()' defined but not used [-Wunused-function]"
fi
rm -rf "$tree/build"
echo 'int size() { return 1; }' >"$tree/engine.cpp"
build 0

# What is fetched, by a stand-in for pip. fetch SETTING...: under these variables of the environment.
unset ROUX_DEPS ROUX_CUDA_LIBRARIES XDG_CACHE_HOME
mkdir -p "$work/bin" "$tree/tests/verify"
cat >"$work/bin/python3" <<'EOF'
#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = --target ]; then mkdir -p "$2" && echo 1 >>"$PIP_RUNS"; fi
  shift
done
EOF
chmod +x "$work/bin/python3"
echo torch >"$tree/runner/cmake/libtorch.txt"
echo pyarrow >"$tree/runner/cmake/arrow.txt"
echo nccl >"$tree/runner/cmake/cuda-link.txt"
echo cublas >"$tree/runner/cmake/cuda-run.txt"
echo aim >"$tree/tests/verify/requirements.txt"
echo absl >"$tree/tests/verify/constraints.txt"
touch "$work/runs"
fetch() {
  env HOME="$work/home" PATH="$work/bin:$PATH" PIP_RUNS="$work/runs" "$@" \
    bash -c '. "$1"; "$2"' bash "$tree/runner/cmake/setup.sh" "${part:-setup_libtorch}" >"$work/said" 2>&1 ||
    { cat "$work/said"; echo "error: fetching fails ($*)"; exit 1; }
}
# lies WHAT NAME FOLDER RUNS: the checkout's name leads to the folder, which is whole, after this many runs of pip.
lies() {
  [ "$(readlink -f "$tree/$2")" = "$3" ] && [ -f "$3/roux-pins.txt" ] && [ "$(wc -l <"$work/runs")" = "$4" ] && return
  cat "$work/said"
  echo "error: $1: $2 is $(readlink -f "$tree/$2") instead of $3, after $(wc -l <"$work/runs") runs of pip, not $4"
  exit 1
}
fetch
cache=$(dirname "$(readlink -f "$tree/.deps")") arrow=$(readlink -f "$tree/.deps-arrow")
case $cache in "$work"/home/.cache/roux/*) ;; *) echo "error: LibTorch lies in $cache"; exit 1 ;; esac
case $arrow in "$cache"/* | "$tree"/*) echo "error: Arrow lies with LibTorch or in the checkout"; exit 1 ;; esac
lies 'the first checkout fetches into the cache' .deps "$cache/deps" 2
lies 'Arrow lies in a folder of its own' .deps-arrow "$arrow" 2
rm "$tree/.deps"
fetch
lies 'the next finds it there' .deps "$cache/deps" 2
fetch ROUX_PRESET=cuda ROUX_CUDA_LIBRARIES=link
lies 'CUDA lies beside it' .deps-cuda "$cache/deps-cuda" 3
fetch ROUX_PRESET=cuda
lies 'what only links is no whole CUDA' .deps-cuda "$cache/deps-cuda" 4
mkdir "$cache/deps-verify" && printf 'aim\nabsl\n' >"$cache/deps-verify/roux-pins.txt"
part=setup_verify fetch
lies 'and so do the tools that read back' .deps-verify "$cache/deps-verify" 4
rm "$tree/.deps" && mkdir "$tree/.deps" && echo torch >"$tree/.deps/roux-pins.txt"
fetch
lies 'a folder with the pins is used as it is' .deps "$tree/.deps" 4
mv "$tree/.deps" "$work/other" && ln -s "$work/other" "$tree/.deps"
fetch
lies 'and so is a link' .deps "$work/other" 4
fetch XDG_CACHE_HOME="$work/xdg" ROUX_DEPS="$work/named"
lies 'ROUX_DEPS leaves the checkout as it is' .deps "$work/other" 6
for folder in named named-arrow; do
  [ -f "$work/$folder/roux-pins.txt" ] || { echo "error: ROUX_DEPS does not get what is fetched"; exit 1; }
done
echo newer >"$tree/runner/cmake/libtorch.txt"
fetch XDG_CACHE_HOME="$work/xdg"
lies 'other pins lie in another folder' .deps "$(echo "$work"/xdg/roux/*)/deps" 7
[ "$(cat "$work/other/roux-pins.txt")" = torch ] || { echo "error: what others use has changed"; exit 1; }
rm "$tree/.deps"
fetch HOME=
lies 'without a HOME it lies in the checkout' .deps "$tree/.deps" 8
rm -r "$tree/.deps"
fetch HOME=/proc
lies 'and so it does where the cache cannot be written' .deps "$tree/.deps" 9
echo "what is fetched lies in the cache; a build says what failed, and nothing when nothing is to do"
