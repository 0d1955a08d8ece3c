#!/usr/bin/env bash
# No program and no library looks for others in the current folder, in one relative to it or in one of a user's
# temporary files: the loader would run the code of whoever put a library there.
set -euo pipefail
source_tree=$(realpath "$1") build=$2
deps=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/installed" >/dev/null
looked=0 bad=0
while IFS= read -r file; do
  [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
  looked=$((looked + 1))
  # A trailing colon is an empty entry too: it must not be lost in the split.
  while IFS= read -r path; do
    while IFS= read -r -d : folder; do
      case $folder in
        '$ORIGIN' | '$ORIGIN'/* | '${ORIGIN}'*) continue ;;
        "$source_tree"/* | "$deps"/* | "$deps"-cuda/*) continue ;;  # which may be a temporary one as a whole
        "$work"/* | /tmp/* | /var/tmp/* | /dev/shm/*) ;;
        /*) continue ;;
      esac
      echo "tests/cli/library_paths.sh: error: $file looks for libraries in \"$folder\""
      bad=1
    done <<<"$path:"
  done < <(readelf -d "$file" 2>/dev/null | sed -n 's/.*(R\(UN\)\{0,1\}PATH).*\[\(.*\)\]$/\2/p')
done < <(find "$build" "$work/installed" -type f ! -name '*.o' ! -name '*.gch' ! -path '*/CMakeFiles/*' \
  \( -perm -u+x -o -name '*.so*' \))
[ $looked -ge 10 ] || { echo "tests/cli/library_paths.sh: error: only $looked programs and libraries found"; exit 1; }
exit $bad
