#!/usr/bin/env bash
# clang_tidy.sh BUILD [BASE]: clang-tidy over the sources that changed since HEAD left BASE (origin/main), of those that
# BUILD compiles; on BASE itself, over those of the last commit or merge. Those without LibTorch come first, as they are
# read in a third of the time. Checks CLANG_TIDY_FILES (40) at most, begins with none after CLANG_TIDY_SECONDS (150),
# and says how many it checked.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. runner/cmake/changes.sh
build=$1
since=$(commit_to_compare "${2:-origin/main}")
[ -n "$since" ] || { echo "no commit to compare with: nothing is checked"; exit 0; }

# Renamed without a change is not changed. What the kernels are compiled from, once for each kind of processor, is
# written with functions of g++ that clang lacks.
changed=$(git diff -M --diff-filter=AMR --name-status "$since" -- runner components trackers schemas |
  awk -F '\t' '$1 != "R100" && $NF !~ /^components\/kernels\/.*_(plain|avx2|avx512)[.]cpp$/ {print $NF}' | sort)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A source that is compiled in one file with others has that file's command.
python3 -I - "$build/compile_commands.json" >"$work/every.json" <<'EOF'
import json, re, sys
entries = []
for entry in json.load(open(sys.argv[1])):
    united = "/Unity/unity_" in entry["file"]
    sources = re.findall(r'^#include "(.+)"$', open(entry["file"]).read(), re.M) if united else [entry["file"]]
    entries += [{**entry, "command": entry["command"].replace(entry["file"], source), "file": source}
                for source in sources]
json.dump(entries, sys.stdout, indent=2)
EOF
# compiled 0|1: the changed sources that are built without LibTorch, or with it.
compiled() {
  comm -12 <(printf '%s\n' "$changed") \
    <(awk -v root="$PWD/" -v torch="$1" '
        /^ *"command": / { is_torch = / -fopenmp / ? 1 : 0 }
        /^ *"file": / { split($0, part, "\""); file = part[4]
                        if (is_torch == torch && index(file, root) == 1) print substr(file, length(root) + 1) }' \
        "$work/every.json" | sort -u)
}
files=$(compiled 0; compiled 1)
[ -n "$files" ] || { echo "no source that $build compiles has changed since $since"; exit 0; }

# A header that g++ has precompiled is none for clang: it reads a copy that has no precompiled one beside it. Without
# AVX512-FP16 clang 14 has no _Float16, and it gives up on tables that g++ computes while it compiles.
find "$build" -name cmake_pch.hxx | while IFS= read -r header; do
  target=$(basename "$(dirname "$header")" .dir)
  cp "$header" "$work/$target.hxx"
done
# Nor has it a header of OpenMP, which LibTorch's includes: that of g++, whose attributes have arguments, has to do.
mkdir "$work/openmp"
sed -E 's/__malloc__ \([a-z_]+\)/__malloc__/' "$(g++ -print-file-name=include/omp.h)" >"$work/openmp/omp.h"
sed -E "s|-include [^ ]*/([^/ ]+)\.dir/cmake_pch\.hxx|-include $work/\1.hxx|
        s/ -(Winvalid-pch|fpch-preprocess)//g; s/ -std=c\+\+20/& -mavx512fp16 -fconstexpr-steps=50000000/
        s| -std=c\+\+20|& -isystem $work/openmp|" \
  "$work/every.json" >"$work/compile_commands.json"
check() {
  [ "$(date +%s)" -lt "$end" ] || return 0
  echo "$1" >>"$work/checked"
  clang-tidy -p "$work" --quiet --warnings-as-errors='*' "$1" 2>/dev/null
}
export -f check
touch "$work/checked"
export work end=$(($(date +%s) + ${CLANG_TIDY_SECONDS:-150}))
status=0
head -n "${CLANG_TIDY_FILES:-40}" <<<"$files" | xargs -P "$(nproc)" -I{} bash -c 'check "$1"' check {} || status=1
echo "clang-tidy: $(wc -l <"$work/checked") of $(wc -l <<<"$files") changed sources checked"
exit $status
