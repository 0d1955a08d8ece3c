#!/usr/bin/env bash
# memory_estimate.sh SOURCE_TREE BUILD: what `roux plan` says that tensors take is within a tenth of the most that they
# take in a run, by the allocator's own count. Nothing here depends on the machine's pages or on other processes.
set -euo pipefail
source_tree=$1
export PATH=$2/bin:$PATH
export OMP_NUM_THREADS=1  # whether the rooms that threads work in meet is luck
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0
room=0.1
# Convolutions of oneDNN for processors without AVX take room of their own, which the plan does not know.
if [ "${ONEDNN_MAX_CPU_ISA:-}" = SSE41 ]; then room=0.15; fi

cat > gpt.yaml << END
recipe_version: 1
model: {type: gpt, n_layer: 4, n_head: 4, n_embd: 128}
data:
  train: {type: text, path: "$source_tree/recipes/smoke/data/license.txt", max_seq_len: 128, stride: 8}
  val: {type: text, path: "$source_tree/recipes/smoke/data/license.txt", split: ":30%", max_seq_len: 128}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 2, micro_batch_size: 16, clip_grad_norm: 1.0}
END
cat > mlp.yaml << END
recipe_version: 1
model: {type: mlp, hidden: [512, 1024, 512], activation: gelu}
data:
  train: {type: synthetic, task: regression, num_samples: 16384, in_features: 64, out_features: 4}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3, momentum: 0.9}
training: {max_steps: 2, micro_batch_size: 2048}
END
cat > layers.yaml << END
recipe_version: 1
model:
  type: sequential
  layers:
    - {type: linear, out_features: 512}
    - layer_norm
    - gelu
    - {type: dropout, p: 0.1}
    - {type: linear, out_features: 768}
    - tanh
    - {type: linear, out_features: 4}
data:
  train: {type: synthetic, task: spirals, num_samples: 8192, num_classes: 4}
  val: {type: synthetic, task: spirals, num_samples: 512, num_classes: 4}
loss: cross_entropy
optimizer: {type: adam, lr: 1.0e-3}
training: {max_steps: 2, micro_batch_size: 1024}
END
cat > images.yaml << END
recipe_version: 1
model:
  type: sequential
  memory_format: channels_last
  layers:
    - type: sequential
      layers: [&conv {type: conv2d, out_channels: 64, kernel_size: 3, padding: 1, bias: false}, batch_norm, relu]
    - {type: max_pool2d, kernel_size: 2}
    - &same {type: residual, body: [*conv, batch_norm, relu, *conv, batch_norm], activation: relu}
    - *same
    - type: residual
      body:
        - {type: conv2d, out_channels: 128, kernel_size: 3, stride: 2, padding: 1, bias: false}
        - {type: group_norm, num_groups: 8}
        - relu
        - {type: conv2d, out_channels: 128, kernel_size: 3, padding: 1, bias: false}
        - {type: group_norm, num_groups: 8}
      shortcut: [{type: conv2d, out_channels: 128, kernel_size: 1, stride: 2, bias: false}, batch_norm]
      activation: relu
    - {type: adaptive_avg_pool2d, output_size: 1}
    - flatten
    - {type: linear, out_features: 10}
data:
  train: {type: synthetic_images, num_samples: 512, num_classes: 10, height: 32, width: 32}
  val: {type: synthetic_images, num_samples: 32, num_classes: 10, height: 32, width: 32}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.02, momentum: 0.9}
training: {max_steps: 2, micro_batch_size: 32}
END
{
  echo a,b,c,d,y
  seq 1 4096 | awk '{ print $1 % 7 "," $1 % 11 "," $1 % 13 "," $1 % 17 "," $1 % 5 }'
} > table.csv
cat > table.yaml << END
recipe_version: 1
model: {type: mlp, hidden: [256, 256]}
data: {train: {type: csv_table, path: table.csv, target: y, task: regression}}
loss: mse
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 2, micro_batch_size: 1024}
END

cat > pooled.yaml << END
recipe_version: 1
model:
  type: sequential
  layers:
    - &conv {type: conv2d, out_channels: 64, kernel_size: 3, padding: 1}
    - relu
    - *conv
    - {type: adaptive_avg_pool2d, output_size: 1}
    - flatten
    - {type: linear, out_features: 10}
data:
  train: {type: synthetic_images, num_samples: 512, num_classes: 10, height: 32, width: 32}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.02, momentum: 0.9}
training: {max_steps: 2, micro_batch_size: 32}
END

# figure NAME FILE: a number of a JSON file.
figure() { tr ',{}' '\n' < "$2" | sed -n "s/^ *\"$1\": *//p"; }

# compare RECIPE SET...
compare() {
  local recipe=$1 flags=(--set training.max_memory=1TB --set checkpoint.save_at_end=false) set planned
  shift
  for set in "$@"; do flags+=(--set "$set"); done
  roux plan "$recipe" "${flags[@]}" --format json > plan.json
  roux run "$recipe" "${flags[@]}" --new --quiet --summary-json run.json
  # What max_memory limits: tensors, and copies of the state that an asynchronous save takes from them.
  planned=$(($(figure tensor_bytes plan.json) + $(figure checkpoint_copy_bytes plan.json)))
  awk -v room="$room" -v planned="$planned" -v measured="$(figure peak_tensor_bytes run.json)" \
    -v when="$(figure memory_peak plan.json)" -v what="$recipe $*" 'BEGIN {
    off = planned / measured - 1
    printf "%+6.1f %%  planned %.1f MB, measured %.1f MB", 100 * off, planned / 1e6, measured / 1e6
    printf ", %s: %s\n", when, what
    exit !(off <= room && off >= -room) }' || bad=1
}

compare gpt.yaml
compare gpt.yaml precision=bf16-mixed
compare gpt.yaml training.fused_kernels=false
compare gpt.yaml training.fused_kernels=false precision=bf16-mixed model.positions=rotary
compare gpt.yaml model.dropout=0.1
compare gpt.yaml model.dropout=0.1 precision=bf16-mixed
compare gpt.yaml model.dropout=0.1 precision=bf16-mixed training.fused_kernels=false
compare gpt.yaml activation_checkpointing=full model.n_layer=8
compare gpt.yaml activation_checkpointing=full model.n_layer=8 precision=bf16-mixed training.fused_kernels=false
compare gpt.yaml activation_checkpointing=selective model.n_layer=8
compare gpt.yaml precision=bf16-true optimizer.type=adafactor
compare gpt.yaml model.vocab_size=16384 training.gradient_accumulation_steps=2 training.micro_batch_size=4
compare gpt.yaml model.vocab_size=16384 model.n_embd=512 model.n_layer=1 training.micro_batch_size=1
compare gpt.yaml model.n_embd=512 training.micro_batch_size=1 eval.eval_steps=1
grep -v "^  val:" gpt.yaml > alone.yaml
two=(launch.num_processes=2 launch.num_cpu_threads_per_process=1 model.n_embd=512 training.micro_batch_size=1)
compare alone.yaml "${two[@]}"
compare alone.yaml "${two[@]}" parallelism.shard=optimizer
compare alone.yaml "${two[@]}" parallelism.shard=gradients checkpoint.save_steps=1
for each in optimizer gradients; do
  compare alone.yaml "${two[@]}" parallelism.shard=$each model.vocab_size=50000 model.n_layer=1
done
compare alone.yaml "${two[@]}" parallelism.shard=parameters
compare alone.yaml "${two[@]}" parallelism.shard=parameters precision=bf16-mixed model.vocab_size=8192
compare alone.yaml "${two[@]}" parallelism.shard=parameters precision=bf16-mixed \
  training.gradient_accumulation_steps=3 accumulation.sync_each_batch=false
for each in true false; do
  compare alone.yaml "${two[@]}" training.gradient_accumulation_steps=3 accumulation.sync_each_batch="$each"
done
compare mlp.yaml
compare mlp.yaml model.activation=relu model.dropout=0.2 precision=bf16-mixed
compare mlp.yaml 'activation_checkpointing={mode: full, segment: 2}'
compare layers.yaml
compare layers.yaml precision=bf16-mixed
compare layers.yaml 'activation_checkpointing={mode: selective, segment: 9}'
compare table.yaml loader.num_workers=2
compare images.yaml
compare images.yaml precision=bf16-mixed
compare images.yaml training.fused_kernels=false
compare images.yaml model.memory_format=contiguous precision=bf16-mixed
compare images.yaml activation_checkpointing=full
compare images.yaml precision=16-mixed activation_checkpointing=full
compare pooled.yaml model.memory_format=channels_last
compare pooled.yaml model.memory_format=channels_last precision=bf16-mixed
compare pooled.yaml model.memory_format=channels_last precision=16-mixed
compare images.yaml weight_averaging=ema training.micro_batch_size=16  # beside 2 MB that oneDNN takes without AVX-512
compare gpt.yaml optimizer.type=lomo training.clip_grad_norm=null model.n_embd=512 training.micro_batch_size=2
compare gpt.yaml optimizer.type=adalomo model.n_embd=256 model.tie_embeddings=false precision=bf16-mixed
compare mlp.yaml 'optimizer={type: lomo, lr: 1.0e-3}'
compare alone.yaml "${two[@]}" optimizer.type=lomo training.clip_grad_norm=null
compare gpt.yaml weight_averaging=ema model.n_embd=512 training.micro_batch_size=1 eval.eval_steps=1
compare layers.yaml 'weight_averaging={type: swa, start_step: 1}'
compare mlp.yaml checkpoint.save_steps=1

# Of a Transformers folder: all weights, adapters, those on fewer bits, recomputed, and states in 8 bits.
cat > base.yaml << END
recipe_version: 1
model: {type: llama, n_layer: 6, n_head: 8, n_kv_head: 4, n_embd: 512, vocab_size: 1024}
data: {train: {type: text, path: "$source_tree/recipes/smoke/data/license.txt", max_seq_len: 128, stride: 8}}
loss: cross_entropy
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 1, micro_batch_size: 1}
END
roux run base.yaml --quiet --new && roux export last base > /dev/null
cat > full.yaml << END
recipe_version: 1
init_from: base
data: {train: {type: text, path: "$source_tree/recipes/smoke/data/license.txt", max_seq_len: 128, stride: 8}}
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 2, micro_batch_size: 4}
END
cat > lora.yaml << END
extends: full.yaml
adapters: [{type: lora, r: 16, target_modules: all-linear}]
END
compare full.yaml
compare full.yaml optimizer.type=adamw_8bit
compare full.yaml optimizer.type=lion_8bit precision=bf16-mixed
compare full.yaml activation_checkpointing=full training.micro_batch_size=16
compare lora.yaml
compare lora.yaml precision=bf16-mixed
compare lora.yaml activation_checkpointing=full training.micro_batch_size=16
for bits in '{load_in_4bit: true, bnb_4bit_quant_type: nf4}' '{load_in_8bit: true}'; do
  compare lora.yaml quantization="$bits"
  compare lora.yaml quantization="$bits" precision=bf16-mixed optimizer.type=adamw_8bit
  compare lora.yaml quantization="$bits" activation_checkpointing=full
done
# Frozen weights that a folder has in bfloat16 stay so, in rows, too.
roux run base.yaml --quiet --new --set precision=bf16-true && roux export last base16 > /dev/null
compare lora.yaml init_from=base16
compare lora.yaml init_from=base16 launch.num_processes=2 launch.num_cpu_threads_per_process=1 \
  parallelism.shard=parameters

# What estimate-memory says of the folder alone is what runs of it take: all weights, LoRA, on 8 bits, on 4.
roux estimate-memory base --max-seq-len 128 --micro-batch-size 4 --format json | tr ',{}' '\n' |
  sed -n 's/^ *"tensor_bytes": *//p' | sed -n '1~2p' > estimated.txt
{
  echo full.yaml quantization=null
  echo lora.yaml quantization=null
  echo lora.yaml "quantization={load_in_8bit: true}"
  echo lora.yaml "quantization={load_in_4bit: true, bnb_4bit_quant_type: nf4}"
} > trainings.txt
while read -r estimated recipe set; do
  roux run "$recipe" --set "$set" --set training.max_memory=1TB --set checkpoint.save_at_end=false \
    --new --quiet --summary-json run.json
  awk -v room="$room" -v estimated="$estimated" -v measured="$(figure peak_tensor_bytes run.json)" \
    -v what="$recipe $set" 'BEGIN {
    off = estimated / measured - 1
    printf "%+6.1f %%  estimate-memory %.1f MB, measured %.1f MB: %s\n", 100 * off, estimated / 1e6,
      measured / 1e6, what
    exit !(off <= room && off >= -room) }' || bad=1
done < <(paste -d ' ' estimated.txt trainings.txt)
exit $bad
