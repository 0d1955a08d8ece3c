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
for wanted in PyTorch CUDA yaml-cpp jsonnet jemalloc CLI11 re2 libpng zlib; do
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

mkdir plugin
cat >plugin/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES C CXX)
find_package(roux 0.1 REQUIRED)
add_library(points MODULE points.c)
target_include_directories(points PRIVATE $<TARGET_PROPERTY:roux::base,INTERFACE_INCLUDE_DIRECTORIES>)
add_executable(author author.cpp)
target_link_libraries(author PRIVATE roux::base)
add_custom_command(TARGET author POST_BUILD
  COMMAND roux::schema_gen --schemas "${ROUX_SCHEMAS}" --out "${CMAKE_BINARY_DIR}/generated")
EOF
cat >plugin/author.cpp <<'EOF'
#include <cstdio>
#include "generated/lr_scheduler/cosine.h"
#include "runner/core/node.h"
int main() {
  const components::lr_scheduler::cosine::Config config{};
  std::printf("%zu %f\n", sizeof(runner::core::Node), config.min_lr_ratio);
}
EOF
# A tracker: appends the names and values of points to a file, and forgets nothing that it was given once.
cat >plugin/points.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include "trackers/plugin_abi.h"
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
  cmake -S plugin -B plugin/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" && ninja -C plugin/build && plugin/build/author
} >plugin.log 2>&1 || { cat plugin.log; fail "a plugin's author cannot build against the installation"; }
[ -f plugin/build/generated/lr_scheduler/cosine.h ] || fail "the installed schema_gen wrote nothing"
bare "$prefix/bin/roux" run tracked.yaml >tracked.log 2>&1 || { cat tracked.log; fail "a run with a plugin fails"; }
show() { cat tracked.log points.txt; fail "$1"; }
grep -qF 'tracker plugin: told {"colour": "red"}' tracked.log || show "what a plugin prints is not told"
[ "$(grep -cx 'loss 20' points.txt)" = 1 ] || show "the plugin has not the last loss once"
echo "installed, moved, built against, and extended by a tracker"
