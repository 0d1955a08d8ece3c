#!/usr/bin/env bash
# committed_losses.sh SOURCE_TREE BUILD: every recipe under recipes/smoke gives the losses that stand in
# tests/numerics/NAME.losses (a line a step: step and loss), and gives them again when each batch is cut in two (but for
# batch norm, whose statistics are those of a micro-batch).
# UPDATE_GOLDEN=1 rewrites the files; then read the diff: a refactor changes none of them.
set -euo pipefail
source_tree=$1
export PATH=$2/bin:$PATH
# The kernels of every x86-64 processor; wider ones add up in another order.
export ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41
tolerance=1e-4 # relative; what is left are the matrix products of MKL, which choose their own instructions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# losses RECIPE FLAG...: a line a step.
losses() {
  (cd "$source_tree" && roux run "$@" --new --quiet --set logging_steps=1 --output-dir "$work/runs" >&2)
  roux runs show last --metric loss --format json --output-dir "$work/runs" |
    tr -d ' \n' | sed 's/\],\[/\n/g; s/[][]//g; s/,/ /g'
  echo
}

# same WANTED FOUND WHAT
same() {
  paste "$1" "$2" | awk -v tolerance=$tolerance -v what="$3" '
    { if (NF != 4 || $1 != $3) { print what ": steps differ at line " NR ": " $0; bad = 1; exit }
      difference = $4 - $2; if (difference < 0) difference = -difference
      size = $2 < 0 ? -$2 : $2
      if (!(difference <= tolerance * size)) { print what ": step " $1 ": loss " $4 ", committed " $2; bad = 1; exit } }
    END { if (NR == 0) { print what ": no step"; bad = 1 } exit bad }'
}

for recipe in "$source_tree"/recipes/smoke/*.yaml; do
  name=$(basename "$recipe" .yaml)
  committed=$source_tree/tests/numerics/$name.losses
  losses "$recipe" > "$work/whole"
  if [ "${UPDATE_GOLDEN:-0}" = 1 ]; then cp "$work/whole" "$committed"; fi
  same "$committed" "$work/whole" "$name"
  if grep -q batch_norm "$recipe"; then
    echo "$name: $(wc -l < "$committed") steps as committed"
    continue
  fi
  micro=$(sed -n 's/.*micro_batch_size: \([0-9]*\).*/\1/p' "$recipe")
  halves=(--set "training.micro_batch_size=$((micro / 2))" --set training.gradient_accumulation_steps=2)
  losses "$recipe" "${halves[@]}" > "$work/halves"
  same "$committed" "$work/halves" "$name in halves"
  echo "$name: $(wc -l < "$committed") steps as committed, in halves too"
done
