#pragma once

#include <optional>

namespace components {

/// Whether models and losses may use fused kernels where supported, instead of plain operations. Process-wide, set
/// before the first forward pass (`training.fused_kernels`).
bool fused_kernels();
void set_fused_kernels(bool allowed);

/// Whether this processor multiplies bfloat16 faster than float32: kernels::Processor::multiplies_bf16_faster(). Others
/// take longer to round and to widen the numbers than they save; with ROUX_CPU_BF16=1 they do all the same, and round
/// as those that are faster.
bool has_bf16_units();
/// For tests: pretend that it has them, or not; nothing: the real answer.
void pretend_bf16_units(std::optional<bool> has);

/// Whether the current autocast allows a fused kernel: none, or one to bfloat16.
bool fused_kernels_fit_autocast();
/// Whether a fused kernel rounds what goes into its products to bfloat16: under autocast, where has_bf16_units().
/// Without them it computes in float32, which bf16-mixed promises no less than.
bool lowers_to_bf16();

/// Whether a weight's copy in bfloat16 is kept for the backward pass and for later passes. Where weights come and go
/// (`parallelism: {shard: parameters}`) the copies of all would remain; there each pass makes its own. Process-wide.
bool keeps_low_weights();
void set_keeps_low_weights(bool keeps);

}  // namespace components
