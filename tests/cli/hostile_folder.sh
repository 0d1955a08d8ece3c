#!/usr/bin/env bash
# Nothing that lies in the current folder is run: no library under the name of one that roux needs or opens, no package
# of Python, no program that a repository's configuration names.
set -euo pipefail
source_tree=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ROUX_TEST_RAN=$work/ran HOME=$work/home
mkdir -p "$work/home" "$work/folder/pip" "$work/folder/venv"
cd "$work/folder"

cat >library.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void run(void) {
  FILE* file = fopen(getenv("ROUX_TEST_RAN"), "a");
  if (file != NULL) fclose(file);
}
END
gcc -shared -fPIC -o library.so library.c
opened=(libcuda.so.1 libnvidia-ml.so.1 libpq.so.5 libcurl.so.4 libroux_engine.so libroux_cuda.so libroux_base.so
  libroux_arrow.so)
needed=$(find "$build/bin/roux" "$build/lib" -type f \( -name roux -o -name '*.so*' \) -exec readelf -d {} + |
  sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort -u)
for name in $needed "${opened[@]}"; do
  case $name in ld-linux*) continue ;; esac
  cp library.so "$name"
done
program="open('$ROUX_TEST_RAN', 'a').close()"
for file in pip/__init__.py pip/__main__.py venv/__main__.py sitecustomize.py; do echo "$program" >$file; done
git init -q .
printf '#!/bin/sh\ntouch "%s"\n' "$ROUX_TEST_RAN" >program.sh
chmod +x program.sh
cp "$source_tree/recipes/examples/toy_linear.yaml" r.yaml
git add r.yaml
git config core.fsmonitor "$PWD/program.sh"

for command in "validate r.yaml" "plan r.yaml" "resolve r.yaml" "run r.yaml --quiet" "eval r.yaml --format json" \
  "list" "explain optimizer/sgd" "env" "runs list"; do
  "$build/bin/roux" $command >"$work/said" 2>&1 || [ "${command%% *}" = eval ] ||
    { cat "$work/said"; echo "tests/cli/hostile_folder.sh: error: roux $command failed"; exit 1; }
  [ ! -e "$ROUX_TEST_RAN" ] || { echo "tests/cli/hostile_folder.sh: error: roux $command ran what lies here"; exit 1; }
done
# What fetches LibTorch for ./roux, tests/run and benchmarks asks whether pip is there.
for file in runner/cmake/setup.sh tests/bench/run; do
  if grep -nE '(python3?|candidate|bin/python)"? -m ' "$source_tree/$file"; then
    echo "tests/cli/hostile_folder.sh: error: $file starts Python without -I"
    exit 1
  fi
done
/usr/bin/python3 -I -m pip --version >/dev/null
[ ! -e "$ROUX_TEST_RAN" ] || { echo "tests/cli/hostile_folder.sh: error: pip of this folder was run"; exit 1; }
