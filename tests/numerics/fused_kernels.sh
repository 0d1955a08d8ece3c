#!/usr/bin/env bash
# fused_kernels.sh SOURCE_TREE BUILD: over 200 steps of the GPT under recipes/smoke, the losses with fused kernels stay
# beside those of the plain operations, in float32 and in bf16-mixed; two `deterministic` runs give the same bits.
set -euo pipefail
source_tree=$1
export PATH=$2/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# losses SET...: a line a step.
losses() {
  local flags=(--set training.max_steps=200 --set logging_steps=1 --set eval.eval_steps=null)
  for set in "$@"; do flags+=(--set "$set"); done
  (cd "$source_tree" && roux run recipes/smoke/gpt.yaml --new --quiet "${flags[@]}" --output-dir "$work/runs" >&2)
  roux runs show last --metric loss --format json --output-dir "$work/runs" |
    tr -d ' \n' | sed 's/\],\[/\n/g; s/[][]//g; s/,/ /g'
  echo
}

# beside MODE BOUND: bound on the mean difference of the last 50 steps, relative to the loss.
beside() {
  losses "precision.mode=$1" training.fused_kernels=true deterministic=true > "$work/fused"
  losses "precision.mode=$1" training.fused_kernels=true deterministic=true > "$work/again"
  cmp "$work/fused" "$work/again" || { echo "$1: two deterministic runs differ"; exit 1; }
  losses "precision.mode=$1" training.fused_kernels=false > "$work/plain"
  paste "$work/fused" "$work/plain" | awk -v bound="$2" -v mode="$1" '
    NR == 1 { first = $4 }
    NR > 150 { d = $2 - $4; sum += (d < 0 ? -d : d) / $4; n++; last = $4 }
    END {
      if (n != 50) { print mode ": " NR " steps"; exit 1 }
      if (!(last < 0.8 * first)) { print mode ": it does not learn"; exit 1 }
      printf "%s: losses of steps 151 to 200 differ by %.2g of the loss, bound %g\n", mode, sum / n, bound
      exit !(sum / n <= bound) }'
}

beside 32-true 2e-3
beside bf16-mixed 2e-2
