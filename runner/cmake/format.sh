#!/usr/bin/env bash
# format.sh -i rewrites every C++ file as .clang-format says; format.sh --dry-run -Werror only complains.
set -euo pipefail
cd "$(dirname "$0")/../.."
find . \( -path ./build -o -path './.*' -o -path ./runs -o -path ./tests/bench/peers \) -prune \
  -o \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' \) -print |
  sort | xargs -r -P "$(nproc)" -n 20 clang-format --style=file "$@"
