#!/usr/bin/env bash
# fused_kernels.sh SOURCE_TREE BUILD: over 200 steps of the GPT under recipes/smoke, the losses with fused kernels stay
# beside those of the plain operations, and two `deterministic` runs give the same bits. What "beside" means is
# measured:
#   32-true     both round alike and differ in the order of their sums, as the plain operations do from themselves when
#               each batch is cut in two; a difference grows over the steps, so four times as far is allowed
#   bf16-mixed  the plain operations in bfloat16 stray from those in float32, and so do the fused kernels, which round
#               elsewhere and less often; half as far again is allowed
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

# fused MODE: two runs with the same bits.
fused() {
  losses "precision.mode=$1" training.fused_kernels=true deterministic=true > "$work/fused"
  losses "precision.mode=$1" training.fused_kernels=true deterministic=true > "$work/again"
  cmp "$work/fused" "$work/again" || { echo "$1: two deterministic runs differ"; exit 1; }
}

# distance FILE: from the plain operations in float32, the mean over steps 151 to 200, relative to the loss.
distance() {
  paste "$1" "$work/plain" | awk '
    NR == 1 { first = $4 }
    NR > 150 { d = $2 - $4; sum += (d < 0 ? -d : d) / $4; n++; last = $4 }
    END {
      if (n != 50) { print NR " steps" > "/dev/stderr"; exit 1 }
      if (!(last < 0.8 * first)) { print "it does not learn" > "/dev/stderr"; exit 1 }
      printf "%.3g\n", sum / n }'
}

# beside MODE OTHER FACTOR WHAT: the fused kernels' distance is at most FACTOR times that of OTHER.
beside() {
  local found allowed
  found=$(distance "$work/fused")
  allowed=$(distance "$work/$2")
  awk -v found="$found" -v allowed="$allowed" -v factor="$3" -v mode="$1" -v what="$4" 'BEGIN {
    printf "%s: losses of steps 151 to 200 stray by %g of the loss; %s by %g, %g times that is allowed\n",
      mode, found, what, allowed, factor
    exit !(found <= factor * allowed) }'
}

losses precision.mode=32-true training.fused_kernels=false > "$work/plain"
micro=$(sed -n 's/.*micro_batch_size: \([0-9]*\).*/\1/p' "$source_tree/recipes/smoke/gpt.yaml")
losses precision.mode=32-true training.fused_kernels=false "training.micro_batch_size=$((micro / 2))" \
  training.gradient_accumulation_steps=2 > "$work/halves"
losses precision.mode=bf16-mixed training.fused_kernels=false > "$work/low"

fused 32-true
beside 32-true halves 4 "the plain operations in halves"
fused bf16-mixed
beside bf16-mixed low 1.5 "the plain operations in bfloat16"
