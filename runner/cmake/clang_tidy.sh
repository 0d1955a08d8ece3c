#!/usr/bin/env bash
# clang_tidy.sh BUILD [BASE]: clang-tidy over the sources that changed since HEAD left BASE (origin/main), of those that
# BUILD compiles; on BASE itself, over those of the last commit or merge. Begins with no file after CLANG_TIDY_SECONDS
# (300), and says how many it checked.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
build=$1 base=${2:-origin/main}
git rev-parse -q --verify "$base^{commit}" >/dev/null || base=main
since=$(git merge-base HEAD "$base" 2>/dev/null || git rev-parse HEAD)
[ "$since" != "$(git rev-parse HEAD)" ] || since=HEAD~1
git rev-parse -q --verify "$since^{commit}" >/dev/null ||
  { echo "no commit to compare with: nothing is checked"; exit 0; }

# Renamed without a change is not changed.
mapfile -t files < <(comm -12 \
  <(git diff -M --diff-filter=AMR --name-status "$since" -- runner components trackers schemas |
    awk -F '\t' '$1 != "R100" {print $NF}' | sort) \
  <(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" "$build/compile_commands.json" | sort))
[ ${#files[@]} -gt 0 ] || { echo "no source that $build compiles has changed since $since"; exit 0; }

checked=$(mktemp)
trap 'rm -f "$checked"' EXIT
check() {
  [ "$(date +%s)" -lt "$end" ] || return 0
  echo "$1" >>"$checked"
  clang-tidy -p "$build" --quiet --warnings-as-errors='*' "$1" 2>/dev/null
}
export -f check
export build checked end=$(($(date +%s) + ${CLANG_TIDY_SECONDS:-300}))
status=0
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} bash -c 'check "$1"' check {} || status=1
echo "clang-tidy: $(wc -l <"$checked") of ${#files[@]} changed sources checked"
exit $status
