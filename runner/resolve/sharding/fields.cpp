#include "runner/resolve/sharding/fields.h"

#include <algorithm>

#include "runner/core/text/text.h"

namespace runner::resolve {
namespace {

using core::lower;
using core::Node;
using enum ShardingField::Use;

constexpr const char* kBlocks = "blocks of the model are sharded and gathered one by one";
constexpr const char* kLayers =
    "classes of layers, such as LlamaDecoderLayer, are the blocks of a model: `block`; others are refused, and "
    "`parallelism.unit_blocks` names blocks";
constexpr const char* kFetched =
    "all modules of a block are fetched at once; `parallelism.min_num_params` joins blocks, which this does not";
constexpr const char* kPersists = "small parameters are sharded, too, and those of a block travel together";
constexpr const char* kOverlap = "what a block needs is gathered while the block before it runs";
constexpr const char* kBackward =
    "BACKWARD_PRE is `before`, BACKWARD_POST `after`, NO_PREFETCH and null `none`; only where parameters are gathered "
    "in the backward pass";
constexpr const char* kBuckets = "what is exchanged at once follows from the blocks";
constexpr const char* kLoading = "all processes begin with the same weights";
constexpr const char* kWhole =
    "`checkpoint.sharded` says whether each process writes its part; any number of processes reads either";
constexpr const char* kHalf =
    "`roux export RUN DIR` gathers the model from either kind of checkpoint, in its own precision; "
    "`from_pretrained(DIR, "
    "dtype=torch.bfloat16)` reads that in 16 bits";
constexpr const char* kKept = "parameters keep their names and shapes";
constexpr const char* kPrinted = "of what is printed: `logging_steps`, `system_metrics` and `profiler` say it here";
constexpr const char* kStays =
    "remove it: what is sharded stays in the device's memory; `parallelism.shard: parameters` and "
    "`activation_checkpointing` need the least";
constexpr const char* kPrecision = "write precision: {mode: bf16-mixed} or another mode";
constexpr const char* kPolicy =
    "as a plain word: bf16 is `bf16-mixed`, fp16 `16-mixed`, fp32 `32-true`; or a mapping of these";
constexpr const char* kCasts = "products cast what they take";
constexpr const char* kQuantized = "remove it: parameters and gradients are exchanged in their own precision";
constexpr const char* kBits = "remove it: there is no training in 8 bits";
constexpr const char* kPython = "remove it: there is no Python";
constexpr const char* kFilter = "what it leaves of the hostfile; `launch.gpu_ids` where those are not the first slots";
constexpr const char* kStart = "`launch.hosts` starts the other machines over ssh";
constexpr const char* kOther = "remove it: roux shards over the processes that share the data alone";
constexpr const char* kExchange = "remove it: gradients are added up in their own precision and divided once";
constexpr const char* kOptimizer = "write what it is in optimizer";
constexpr const char* kSchedule = "write what it is in lr_scheduler";
constexpr const char* kStageOf = "0 is none, 1 `optimizer`, 2 `gradients`, 3 `parameters`";
constexpr const char* kCopies = "as `dp_shard_size`: each group of that size holds a whole copy";

constexpr ShardingField kFsdp[] = {
    {"version", kRead, "", "1 or 2"},
    {"sharding_strategy", kRead, "parallelism.shard",
     "FULL_SHARD (1) is `parameters`, SHARD_GRAD_OP (2) `gradients`, NO_SHARD (3) none; HYBRID_SHARD (4) and "
     "HYBRID_SHARD_ZERO2 (5) also set `dp_replicate_size` to the number of machines"},
    {"reshard_after_forward", kRead, "parallelism.reshard_after_forward",
     "`true` and `false` with `shard: parameters`; a strategy's name is that strategy"},
    {"activation_checkpointing", kRead, "activation_checkpointing.mode", "`true` is `full`"},
    {"offload_params", kRefused, "", kStays},
    {"cpu_offload", kRefused, "", kStays},
    {"auto_wrap_policy", kRead, "parallelism.unit",
     "TRANSFORMER_BASED_WRAP is `block`; NO_WRAP, and SIZE_BASED_WRAP without `min_num_params`, `model`; only with "
     "FULL_SHARD and HYBRID_SHARD"},
    {"transformer_layer_cls_to_wrap", kRead, "parallelism.unit", kLayers},
    {"transformer_cls_names_to_wrap", kRead, "parallelism.unit", kLayers},
    {"min_num_params", kRead, "parallelism.min_num_params",
     "consecutive blocks are joined up to it, where FSDP wraps modules of that size; 0 is none"},
    {"backward_prefetch", kRead, "parallelism.backward_prefetch", kBackward},
    {"backward_prefetch_policy", kRead, "parallelism.backward_prefetch", kBackward},
    {"forward_prefetch", kRead, "parallelism.forward_prefetch",
     "`true`, where units are gathered one by one; `false` has no effect, as FSDP gathers ahead without it, too"},
    {"limit_all_gathers", kRead, "parallelism.prefetch_units",
     "`true` is 1, besides the unit that runs; `false`, no limit, is 2"},
    {"state_dict_type", kRead, "checkpoint.sharded",
     "SHARDED_STATE_DICT (3) and LOCAL_STATE_DICT (2) are `true`, FULL_STATE_DICT (1) `false`; any number of processes "
     "reads either"},
    {"state_dict_config", kNoEffect, "", kWhole},
    {"optim_state_dict_config", kNoEffect, "", kWhole},
    {"use_orig_params", kNoEffect, "", kKept},
    {"sync_module_states", kNoEffect, "", kLoading},
    {"cpu_ram_efficient_loading", kNoEffect, "", kLoading},
    {"param_init_fn", kRefused, "", kPython},
    {"ignored_modules", kRead, "parallelism.replicate",
     "names of modules, or a regular expression of them, stand for their parameters; their gradients are added up over "
     "the processes, which FSDP leaves to the caller"},
    {"mixed_precision_policy", kRead, "precision.mode", kPolicy},
    {"mixed_precision_policy.param_dtype", kRead, "precision.mode",
     "bfloat16 is `bf16-mixed`, float16 `16-mixed`, float32 `32-true`; null leaves it to `precision`"},
    {"mixed_precision_policy.reduce_dtype", kRead, "", "gradients are added up in float32, whatever type travels"},
    {"mixed_precision_policy.buffer_dtype", kRead, "", "buffers stay float32"},
    {"mixed_precision_policy.output_dtype", kRead, "", "losses are computed in float32"},
    {"mixed_precision_policy.cast_forward_inputs", kNoEffect, "", kCasts},
    {"mixed_precision_policy.cast_root_forward_inputs", kNoEffect, "", kCasts},
    {"mixed_precision_policy.keep_low_precision_grads", kNoEffect, "", "the optimizer gets gradients in float32"},
    {"xla", kRefused, "", "remove it: roux does not train on TPUs"},
    {"xla_fsdp_v2", kRefused, "", "remove it: roux does not train on TPUs"},
    {"xla_fsdp_settings", kRefused, "", "remove it: roux does not train on TPUs"},
    {"xla_fsdp_grad_ckpt", kRefused, "", "remove it: roux does not train on TPUs"},
};

constexpr ShardingField kPlugin[] = {
    {"zero_stage", kRead, "parallelism.shard", kStageOf},
    {"gradient_accumulation_steps", kCopied, "training.gradient_accumulation_steps", ""},
    {"gradient_clipping", kRead, "training.clip_grad_norm", "0 is none"},
    {"deepspeed_config_file", kRead, "", "the file is read as the next table says"},
    {"hf_ds_config", kRead, "", "the same"},
    {"config_file", kRead, "", "the same"},
    {"offload_optimizer_device", kRefused, "", kStays},
    {"offload_optimizer_nvme_path", kRefused, "", kStays},
    {"offload_param_device", kRefused, "", kStays},
    {"offload_param_nvme_path", kRefused, "", kStays},
    {"zero3_init_flag", kNoEffect, "", kLoading},
    {"zero3_save_16bit_model", kNoEffect, "", kHalf},
    {"is_train_batch_min", kNoEffect, "", "`training` says the sizes of batches"},
    {"transformer_moe_cls_names", kNoEffect, "", kBlocks},
    {"deepspeed_moe_layer_cls_names", kNoEffect, "", kBlocks},
    {"deepspeed_multinode_launcher", kNoEffect, "", kStart},
    {"deepspeed_hostfile", kRead, "launch.hosts", "the file's machines with their slots"},
    {"deepspeed_inclusion_filter", kRead, "launch.hosts", kFilter},
    {"deepspeed_exclusion_filter", kRead, "launch.hosts", kFilter},
    {"enable_msamp", kRefused, "", kBits},
    {"msamp_opt_level", kRefused, "", kBits},
};

constexpr ShardingField kDeepspeed[] = {
    {"train_batch_size", kCopied, "training.global_batch_size", ""},
    {"train_micro_batch_size_per_gpu", kCopied, "training.micro_batch_size", ""},
    {"gradient_accumulation_steps", kCopied, "training.gradient_accumulation_steps", ""},
    {"gradient_clipping", kRead, "training.clip_grad_norm", "0 is none"},
    {"optimizer.type", kRead, "optimizer.type",
     "Adam with `adam_w_mode` (the default) and AdamW are `adamw`, Adam without it `adam`, Lamb, Lion, SGD and Adagrad "
     "their own; OneBitAdam and others are refused"},
    {"optimizer.params.lr", kCopied, "optimizer.lr", ""},
    {"optimizer.params.betas", kCopied, "optimizer.betas", ""},
    {"optimizer.params.eps", kCopied, "optimizer.eps", ""},
    {"optimizer.params.weight_decay", kCopied, "optimizer.weight_decay", ""},
    {"optimizer.params.momentum", kCopied, "optimizer.momentum", ""},
    {"optimizer.params.adam_w_mode", kRead, "optimizer.type", "`false` makes Adam `adam`"},
    {"optimizer.params.torch_adam", kNoEffect, "", "there is one Adam, and it is fused"},
    {"optimizer.params.fused", kNoEffect, "", "there is one Adam, and it is fused"},
    {"optimizer.params", kRefused, "", kOptimizer},
    {"optimizer.legacy_fusion", kNoEffect, "", "there is one Adam, and it is fused"},
    {"scheduler.type", kRead, "lr_scheduler.decay",
     "WarmupLR is `type: deepspeed` with `decay: constant`, WarmupDecayLR `linear`, WarmupCosineLR `cosine`; others "
     "are "
     "refused"},
    {"scheduler.params.warmup_max_lr", kCopied, "optimizer.lr", ""},
    {"scheduler.params.warmup_min_lr", kRead, "lr_scheduler.warmup_min_ratio", "divided by `warmup_max_lr`"},
    {"scheduler.params.warmup_num_steps", kCopied, "lr_scheduler.warmup_steps",
     "`auto` is none where the recipe has none, as with the Trainer"},
    {"scheduler.params.total_num_steps", kCopied, "lr_scheduler.total_steps", ""},
    {"scheduler.params.warmup_type", kCopied, "lr_scheduler.warmup_type", ""},
    {"scheduler.params.warmup_min_ratio", kCopied, "lr_scheduler.warmup_min_ratio", ""},
    {"scheduler.params.cos_min_ratio", kCopied, "lr_scheduler.cos_min_ratio", ""},
    {"scheduler.params.last_batch_iteration", kNoEffect, "", "a resumed run goes on where it was"},
    {"scheduler.params", kRefused, "", kSchedule},
    {"fp16.enabled", kRead, "precision.mode", "`true` is `16-mixed`"},
    {"fp16.loss_scale", kRead, "precision.scaler.loss_scale", "0 adapts the scale"},
    {"fp16.initial_scale_power", kRead, "precision.scaler.init_scale", "2 to that power"},
    {"fp16.loss_scale_window", kRead, "precision.scaler.growth_interval", ""},
    {"fp16.hysteresis", kRead, "precision.scaler.hysteresis", ""},
    {"fp16.min_loss_scale", kRead, "precision.scaler.min_loss_scale", ""},
    {"fp16.consecutive_hysteresis", kRefused, "", "remove it: overflows are counted again when the scale has grown"},
    {"fp16.auto_cast", kNoEffect, "", "the mixed modes always cast"},
    {"fp16.fp16_master_weights_and_grads", kRefused, "", "remove it: `16-mixed` keeps weights in float32"},
    {"bf16.enabled", kRead, "precision.mode", "`true` is `bf16-mixed`"},
    {"bf16.immediate_grad_update", kNoEffect, "", "gradients are added up as they are made"},
    {"bfloat16.enabled", kRead, "precision.mode", "old name of bf16"},
    {"amp", kRefused, "", kPrecision},
    {"data_types.grad_accum_dtype", kRefused, "", "remove it: gradients are added up in the precision of the weights"},
    {"torch_autocast", kRefused, "", kPrecision},
    {"zero_optimization.stage", kRead, "parallelism.shard", kStageOf},
    {"zero_optimization.zero_hpz_partition_size", kRead, "parallelism.dp_shard_size", kCopies},
    {"zero_optimization.mics_shard_size", kRead, "parallelism.dp_shard_size", kCopies},
    {"zero_optimization.mics_hierarchical_params_gather", kNoEffect, "", kOverlap},
    {"zero_optimization.offload_optimizer", kRefused, "", kStays},
    {"zero_optimization.offload_param", kRefused, "", kStays},
    {"zero_optimization.cpu_offload", kRefused, "", kStays},
    {"zero_optimization.cpu_offload_params", kRefused, "", kStays},
    {"zero_optimization.zero_quantized_weights", kRefused, "", kQuantized},
    {"zero_optimization.zero_quantized_nontrainable_weights", kRefused, "", kQuantized},
    {"zero_optimization.zero_quantized_gradients", kRefused, "", kQuantized},
    {"zero_optimization.zeropp_loco_param", kRefused, "", kQuantized},
    {"zero_optimization.contiguous_gradients", kNoEffect, "", kBuckets},
    {"zero_optimization.reduce_scatter", kNoEffect, "", kBuckets},
    {"zero_optimization.reduce_bucket_size", kNoEffect, "", kBuckets},
    {"zero_optimization.use_multi_rank_bucket_allreduce", kNoEffect, "", kBuckets},
    {"zero_optimization.allgather_partitions", kNoEffect, "", kBuckets},
    {"zero_optimization.allgather_bucket_size", kNoEffect, "", kBuckets},
    {"zero_optimization.overlap_comm", kNoEffect, "", kOverlap},
    {"zero_optimization.round_robin_gradients", kNoEffect, "", kBuckets},
    {"zero_optimization.sub_group_size", kNoEffect, "", kBuckets},
    {"zero_optimization.load_from_fp32_weights", kNoEffect, "", kWhole},
    {"zero_optimization.elastic_checkpoint", kNoEffect, "", kWhole},
    {"zero_optimization.pipeline_loading_checkpoint", kNoEffect, "", kLoading},
    {"zero_optimization.ignore_unused_parameters", kNoEffect, "", "`ddp.find_unused_parameters` says it here"},
    {"zero_optimization.legacy_stage1", kNoEffect, "", kBuckets},
    {"zero_optimization.memory_efficient_linear", kNoEffect, "", kBlocks},
    {"zero_optimization.override_module_apply", kNoEffect, "", kLoading},
    {"zero_optimization.leaf_module", kNoEffect, "", kFetched},
    {"zero_optimization.module_granularity_threshold", kNoEffect, "", kFetched},
    {"zero_optimization.use_all_reduce_for_fetch_params", kNoEffect, "", kOverlap},
    {"zero_optimization.log_trace_cache_warnings", kNoEffect, "", kOverlap},
    {"zero_optimization.stage3_max_live_parameters", kNoEffect, "", kOverlap},
    {"zero_optimization.stage3_max_reuse_distance", kNoEffect, "",
     "`parallelism.reshard_after_forward` says what is kept"},
    {"zero_optimization.stage3_prefetch_bucket_size", kRead, "parallelism.forward_prefetch",
     "0 is `false`, with `backward_prefetch: none`; other sizes have no effect, as `parallelism.prefetch_units` counts "
     "units"},
    {"zero_optimization.stage3_param_persistence_threshold", kNoEffect, "", kPersists},
    {"zero_optimization.stage3_model_persistence_threshold", kNoEffect, "", kPersists},
    {"zero_optimization.stage3_module_granularity_threshold", kNoEffect, "", kFetched},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", kNoEffect, "", kOverlap},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", kNoEffect, "", kHalf},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", kNoEffect, "", kHalf},
    {"zero_allow_untested_optimizer", kNoEffect, "", "an optimizer that cannot be sharded is refused"},
    {"zero_force_ds_cpu_optimizer", kNoEffect, "", "nothing is moved to the CPU"},
    {"activation_checkpointing.cpu_checkpointing", kRefused, "", kStays},
    {"activation_checkpointing", kNoEffect, "",
     "`activation_checkpointing` of a recipe says what is recomputed; these say how"},
    {"communication_data_type", kRefused, "", kExchange},
    {"seq_parallel_communication_data_type", kRefused, "", kOther},
    {"prescale_gradients", kRefused, "", kExchange},
    {"gradient_predivide_factor", kNoEffect, "", "only with `prescale_gradients`"},
    {"sparse_gradients", kRefused, "", "remove it: gradients are dense"},
    {"disable_allgather", kNoEffect, "", kBuckets},
    {"graph_harvesting", kRefused, "", "`compile.cuda_graphs` captures the steps of one process"},
    {"compile", kRefused, "", "remove it: roux compiles no graph"},
    {"dataloader_drop_last", kCopied, "loader.drop_last", ""},
    {"seed", kCopied, "seed", ""},
    {"steps_per_print", kNoEffect, "", kPrinted},
    {"wall_clock_breakdown", kNoEffect, "", kPrinted},
    {"memory_breakdown", kNoEffect, "", kPrinted},
    {"dump_state", kNoEffect, "", kPrinted},
    {"flops_profiler", kNoEffect, "", kPrinted},
    {"comms_logger", kNoEffect, "", kPrinted},
    {"tensorboard", kRefused, "", "write trackers: [tensorboard]"},
    {"wandb", kRefused, "", "write trackers: [wandb]"},
    {"comet", kRefused, "", "write trackers: [comet_ml]"},
    {"csv_monitor", kNoEffect, "", "`roux runs export` writes CSV"},
    {"aio", kNoEffect, "", "only of what is offloaded"},
    {"checkpoint", kNoEffect, "", kWhole},
    {"use_data_before_expert_parallelism", kRefused, "", kOther},
    {"pipeline", kRefused, "", kOther},
    {"tensor_parallel", kRefused, "", kOther},
    {"hybrid_engine", kRefused, "", "remove it: it is of reinforcement learning"},
    {"autotuning", kRefused, "", "training: {auto_micro_batch: halve} finds a size that fits"},
    {"elasticity", kRefused, "", "write launch: {min_machines: ...}"},
    {"compression_training", kRefused, "", "remove it; compress the trained weights"},
    {"curriculum_learning", kRefused, "", "remove it, and order the data"},
    {"data_efficiency", kRefused, "", "remove it, and order the data"},
    {"progressive_layer_drop", kRefused, "", "remove it: blocks are never left out"},
    {"eigenvalue", kRefused, "", "remove it: it is of quantized training"},
    {"quantize_training", kRefused, "", kBits},
    {"sparse_attention", kRefused, "", "remove it; the model says its attention"},
    {"vocabulary_size", kNoEffect, "", "the model says it"},
};

std::string table(std::span<const ShardingField> fields) {
  std::string text = "| Field | Becomes | |\n| --- | --- | --- |\n";
  for (const ShardingField& field : fields) {
    std::string becomes = field.use == kNoEffect ? "*no effect*" : field.use == kRefused ? "*refused*" : "";
    if (*field.key != '\0') becomes = "`" + std::string(field.key) + "`";
    text += "| `" + std::string(field.name) + "` | " + becomes + " | " + field.note + " |\n";
  }
  return text;
}

}  // namespace

/// Whether a setting asks for nothing: null, `false`, `none`, `auto`, a mapping with `device: none` or `enabled:
/// false`.
bool asks_nothing(const Node& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return true;
  if (value.is_sequence()) return value.items().empty();
  if (value.is_mapping()) {
    for (const char* key : {"device", "enabled"}) {
      if (const Node* says = value.find(key)) return asks_nothing(*says);
    }
    return std::all_of(value.entries().begin(), value.entries().end(),
                       [](const Node::Entry& entry) { return asks_nothing(entry.value); });
  }
  const std::string text = value.is_string() ? lower(value.as_string()) : "";
  return value.is_string() && (text.empty() || text == "no" || text == "none" || text == "false" || text == "auto");
}

std::span<const ShardingField> fsdp_fields() { return kFsdp; }
std::span<const ShardingField> deepspeed_plugin_fields() { return kPlugin; }
std::span<const ShardingField> deepspeed_fields() { return kDeepspeed; }

const ShardingField* find_field(std::span<const ShardingField> fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return name == field.name; });
  return found == fields.end() ? nullptr : &*found;
}

std::string sharding_tables() {
  return "## Fields of FSDP\n\nOf `fsdp_config`, where `fsdp_` may stand before each, and of "
         "`FullyShardedDataParallelPlugin`.\n\n" +
         table(kFsdp) + "\n## Fields of DeepSpeed's plugin\n\nOf `deepspeed_config` and `DeepSpeedPlugin`.\n\n" +
         table(kPlugin) +
         "\n## DeepSpeed's JSON\n\nWhat a row does not name within a section is as the section's row says; other keys "
         "are errors.\n\n" +
         table(kDeepspeed);
}

}  // namespace runner::resolve
