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
for wanted in PyTorch CUDA yaml-cpp jsonnet jemalloc CLI11; do
  grep -qi "$wanted" "$prefix/share/doc/roux/NOTICE-third-party" || fail "NOTICE-third-party does not speak of $wanted"
done
for file in bash-completion/completions/roux zsh/site-functions/_roux fish/vendor_completions.d/roux.fish; do
  [ -s "$prefix/share/$file" ] || fail "no completions in share/$file"
done
grep -q 'SPDX-License-Identifier: Apache-2.0' "$prefix/share/doc/roux/LICENSE" || fail "no licence"

mkdir plugin
cat >plugin/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES CXX)
find_package(roux 0.1 REQUIRED)
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
{
  cmake -S plugin -B plugin/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" && ninja -C plugin/build && plugin/build/author
} >plugin.log 2>&1 || { cat plugin.log; fail "a plugin's author cannot build against the installation"; }
[ -f plugin/build/generated/lr_scheduler/cosine.h ] || fail "the installed schema_gen wrote nothing"
echo "installed, moved, and built against"
