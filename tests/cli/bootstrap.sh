#!/usr/bin/env bash
# What setup.sh says of a build, tried on a tree of two files with the scripts and the tool chain of this one.
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
echo "a build says what failed, and nothing when nothing is to do"
