#!/usr/bin/env bash
# An installation runs from any folder, carries what it needs, and a plugin's author can build against it.
set -euo pipefail
source_tree=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "tests/cli/install.sh: error: $1"
  exit 1
}

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
prefix=$work/moved
cd "$work"

bare() { env -i HOME="$work" PATH=/usr/bin:/bin "$@"; }
bare "$prefix/bin/roux" list optimizer | grep -q adamw || fail "the moved roux lists no adamw"
bare "$prefix/bin/roux" env >/dev/null || fail "the moved roux cannot load its engine"
for file in "$prefix"/bin/roux "$prefix"/lib/libroux_engine.so; do
  away=$(ldd "$file" | awk '$2 == "=>" {print $3 == "not" ? $1 " (not found)" : $3}' |
    grep -vE "^$prefix/|/(libc|libm|libdl|librt|libutil|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so" || true)
  [ -z "$away" ] || fail "$file needs what is not carried: $away"
done
if ldd "$prefix/bin/roux" | grep -qE 'libtorch|libc10'; then fail "roux itself links LibTorch"; fi
for name in "$prefix"/bin/roux "$prefix"/bin/schema_gen "$prefix"/lib/libroux_*.so; do
  path=$(readelf -d "$name" | sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1/p')
  [ "$path" = '$ORIGIN/../lib' ] || fail "$name looks for libraries in $path"
done
for wanted in PyTorch CUDA yaml-cpp jsonnet jemalloc CLI11 re2 libpng pcre2 utf8proc zlib libedit; do
  grep -qi "$wanted" "$prefix/share/doc/roux/NOTICE-third-party" || fail "NOTICE-third-party does not speak of $wanted"
done
for file in bash-completion/completions/roux zsh/site-functions/_roux fish/vendor_completions.d/roux.fish; do
  [ -s "$prefix/share/$file" ] || fail "no completions in share/$file"
done
grep -q 'SPDX-License-Identifier: Apache-2.0' "$prefix/share/doc/roux/LICENSE" || fail "no licence"
for wanted in 'TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION' 'END OF TERMS AND CONDITIONS'; do
  grep -q "$wanted" "$prefix/share/doc/roux/LICENSE" || fail "LICENSE lacks $wanted"
done
grep -q 'Frances Y. Kuo and Stephen Joe' "$prefix/share/doc/roux/NOTICE" || fail "NOTICE lacks the Sobol table"

# Installed are the public headers and what they include, each kind of component has one, and no file is missing.
torch=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")/torch
mkdir plugin
for header in "$prefix"/include/roux/*.h; do echo "#include <roux/${header##*/}>"; done >plugin/public.cpp
g++ -std=c++20 -M -I "$prefix/include" -I "$prefix/include/roux/detail" -isystem "$torch/include" plugin/public.cpp |
  tr -s ' \\' '\n' | grep "^$prefix/include/" | sort -u >reached
find "$prefix/include" -type f | sort | diff - reached || fail "installed headers (<) are not those reached (>)"
sed -n 's/.*"kind": "\([a-z_]*\)".*"header": "\([^"]*\)".*/\1 \2/p' "$prefix/share/roux/schemas/kinds.json" >kinds
[ -s kinds ] || fail "no kinds in the installed schemas"
while read -r kind header; do
  grep -qF "#include \"$header\"" "$prefix/include/roux/$kind.h" || fail "roux/$kind.h does not give $header"
done <kinds

# The worked examples of the documentation, built outside of the tree. What trains is linked whole.
page=$source_tree/docs/writing-a-component.md
awk '/^```[a-z]+ (schemas|components|trackers)\/[^ ]+$/ { print $2 }' "$page" >examples
[ "$(wc -l <examples)" = 12 ] || { cat examples; fail "the documentation names other examples"; }
cp -r "$prefix/share/roux/schemas" plugin
while read -r file; do
  mkdir -p "plugin/${file%/*}"
  awk -v file="$file" '/^```[a-z]* / { on = $2 == file; next } /^```$/ { on = 0 } on' "$page" >"plugin/$file"
done <examples
cat >plugin/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES C CXX)
find_package(roux 0.1 REQUIRED)
add_library(points MODULE points.c)
target_include_directories(points PRIVATE $<TARGET_PROPERTY:roux::base,INTERFACE_INCLUDE_DIRECTORIES>)
add_custom_command(OUTPUT generated/stamp
  COMMAND roux::schema_gen --schemas "${CMAKE_SOURCE_DIR}/schemas" --out generated
  COMMAND ${CMAKE_COMMAND} -E touch generated/stamp)
add_custom_target(generate DEPENDS generated/stamp)
include_directories("${CMAKE_BINARY_DIR}")
add_library(learns SHARED public.cpp components/optimizer/signum.cpp components/lr_scheduler/staircase.cpp
                          components/model/quadratic.cpp components/model/masked_encoder.cpp)
target_include_directories(learns SYSTEM PRIVATE "${TORCH}/include")
target_link_libraries(learns PRIVATE roux::engine "${TORCH}/lib/libtorch_cpu.so" "${TORCH}/lib/libc10.so")
target_link_options(learns PRIVATE -Wl,-z,defs "-Wl,-rpath-link,${TORCH}/lib")
add_library(others MODULE components/sampler/halton.cpp trackers/tsv.cpp)
target_link_libraries(others PRIVATE roux::base)
add_executable(author author.cpp components/lr_scheduler/staircase.cpp)
target_link_libraries(author PRIVATE roux::base)
foreach(target learns others author)
  add_dependencies(${target} generate)
endforeach()
EOF
cat >plugin/author.cpp <<'EOF'
#include <roux/core.h>
#include <roux/lr_scheduler.h>

#include <cstdio>

#include "generated/lr_scheduler/staircase.h"
int main() {
  const auto scheduler = components::lr_scheduler::staircase::make({.every_steps = 10}, {});
  std::printf("%s, then %g\n", runner::core::counted(10, "step", "steps").c_str(), scheduler->factor(25));
}
EOF
# A tracker: appends the names and values of points to a file, and forgets nothing that it was given once.
cat >plugin/points.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <roux/tracker_plugin.h>
static FILE* file;
static long kept;
static char state_text[32];
static int start(void* self, const char* run, const char* state) {
  (void)self, (void)run;
  file = fopen("points.txt", state ? "r+" : "w+");
  return !file || fseek(file, state ? atol(state) : 0, SEEK_SET) ? ROUX_PAUSE : ROUX_TAKEN;
}
static int take(void* self, const roux_point* points, size_t count) {
  (void)self;
  for (size_t i = 0; i < count; ++i) fprintf(file, "%s %lld\n", points[i].name, (long long)points[i].step);
  return ROUX_TAKEN;
}
static int flush(void* self, int durable) {
  (void)self, (void)durable;
  kept = ftell(file);
  return fflush(file) ? ROUX_TRY_AGAIN : ROUX_TAKEN;
}
static const char* state(void* self) {
  (void)self;
  snprintf(state_text, sizeof state_text, "%ld", kept);
  return state_text;
}
const roux_tracker* roux_tracker_open(const char* options) {
  static const roux_tracker tracker = {
      .abi = ROUX_TRACKER_ABI, .start = start, .log = take, .flush = flush, .state = state};
  fprintf(stderr, "told %s\n", options);
  return &tracker;
}
EOF
cat >tracked.yaml <<'EOF'
run_name: tracked
device: cpu
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 20, micro_batch_size: 2}
trackers: [{type: plugin, path: plugin/build/libpoints.so, options: {colour: red}}]
EOF
{
  cmake -S plugin -B plugin/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DTORCH="$torch" && ninja -C plugin/build
} >plugin.log 2>&1 || { cat plugin.log; fail "a plugin's author cannot build against the installation"; }
said=$(plugin/build/author) || fail "what was built against the installation does not run"
[ "$said" = "10 steps, then 0.25" ] || fail "what was built against the installation says $said"
bare "$prefix/bin/roux" run tracked.yaml >tracked.log 2>&1 || { cat tracked.log; fail "a run with a plugin fails"; }
show() { cat tracked.log points.txt; fail "$1"; }
grep -qF 'tracker plugin: told {"colour": "red"}' tracked.log || show "what a plugin prints is not told"
[ "$(grep -cx 'loss 20' points.txt)" = 1 ] || show "the plugin has not the last loss once"
echo "installed, moved, built against, and extended by a tracker"
