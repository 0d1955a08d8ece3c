#!/usr/bin/env bash
# source_hash covers what decides on the bits of a program: a change of any such file changes it, of another none.
set -euo pipefail
source_tree=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source_tree"/{CMakeLists.txt,README.md,runner,components,trackers,schemas} "$work"

source_hash() {
  cmake -DROOT="$work" -DOUT="$work/hash.txt" -DVERSION=1 -DBUILD=Dev -P "$source_tree/runner/cmake/source_hash.cmake"
  sed -n 's/.*source_hash() { return "\(.*\)"; }/\1/p' "$work/hash.txt"
}

before=$(source_hash)
[[ $before =~ ^[0-9a-f]{16}$ ]] || { echo "error: \"$before\" is no hash"; exit 1; }
some() { find "$work/$1" -name "$2" | sort | sed -n 1p; }
for file in "$(some components '*.inl')" "$(some runner '*.h')" "$(some trackers '*.cpp')" \
            "$(some schemas/section '*.json')" "$(some schemas/gen '*.h')" \
            "$work"/{CMakeLists.txt,runner/cmake/{layers.cmake,toolchain.cmake,libtorch.txt}}; do
  cp "$file" "$work/kept"
  echo >>"$file"
  [ "$(source_hash)" != "$before" ] || { echo "error: ${file#"$work"/} may change without the hash"; exit 1; }
  cp "$work/kept" "$file"
done
for file in README.md schemas/recipe.schema.json; do echo >>"$work/$file"; done
[ "$(source_hash)" = "$before" ] || { echo "error: what is no source of the program changes its hash"; exit 1; }
echo "the hash follows the sources"
