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

torch=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")/torch
"$source_tree/tests/packaging/plugins" "$prefix" "$torch" || fail "a plugin's author cannot build against it"
echo "installed, moved, built against, and extended by a tracker"
