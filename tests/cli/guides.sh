#!/usr/bin/env bash
# guides.sh SOURCE_TREE BUILD [PAGE...]: runs every ```sh block of README.md and docs/guides/, in the order of its page,
# as a reader would, in a folder of its own beside the recipes. ```yaml NAME blocks are the files of that name. What a
# page needs and does not show stands in a line `<!-- test: COMMAND -->`. Other blocks are not run.
set -euo pipefail
source_tree=$1 build=$2
shift 2
cd "$source_tree"
pages=("$@")
[ $# -gt 0 ] || pages=(README.md docs/guides/*.md)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The commands of a page as one script; `at` says which block is running.
script_of() {
  cat <<'EOF'
set -euo pipefail
trap 'status=$?; echo "$at: error: exit status $status: $BASH_COMMAND"' ERR
EOF
  awk -v page="$1" '
    /^<!-- test: .* -->$/ { print "at=" page ":" FNR; print substr($0, 12, length($0) - 15) }
    /^```sh$/ { print "at=" page ":" FNR; sh = 1; next }
    /^```yaml [^ ]+$/ { print "cat >" $2 " <<\"END_OF_FILE\""; yaml = 1; next }
    /^```$/ { if (yaml) print "END_OF_FILE"; sh = yaml = 0 }
    sh || yaml' "$1"
}

run_page() {
  local folder=$work/${1//\//_} log=$work/${1//\//_}.log
  mkdir "$folder" "$folder/home"
  cp -r recipes "$folder/recipes"
  # A checkout has ./roux; here it is what was built.
  printf '#!/bin/sh\nexec "%s/bin/roux" "$@"\n' "$build" >"$folder/roux"
  chmod +x "$folder/roux"
  script_of "$1" >"$folder.sh"
  if (cd "$folder" && env -i PATH="$build/bin:/usr/local/bin:/usr/bin:/bin" HOME="$folder/home" LANG=C.UTF-8 \
      OMP_NUM_THREADS=1 timeout 300 bash "$folder.sh" </dev/null >"$log" 2>&1); then
    printf '%-40s %2d blocks %3d s\n' "$1" "$(grep -c '^at=' "$folder.sh")" $((SECONDS - begin))
  else
    tail -n 25 "$log"
    return 1
  fi
}

for page in "${pages[@]}"; do
  begin=$SECONDS
  run_page "$page"
done
