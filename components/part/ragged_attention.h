#pragma once

#include <cstdint>
#include <optional>

#include "components/part/attention.h"
#include "runner/core/tensor_fwd.h"

namespace components {
class TensorMap;
}

namespace components::part {

/// Documents that lie one after the other in the rows of a batch, as note_rows() found them.
struct RaggedRows {
  at::Tensor begins;         ///< [n + 1] int32, on the device
  std::int64_t longest = 0;  ///< positions of one
  at::Tensor real_places;    ///< [m] int64; undefined: all positions are real
};

/// Nothing where the batch has no such notes.
std::optional<RaggedRows> ragged_rows(const TensorMap& batch);

/// Causal attention by the kernels that LibTorch has for GPUs: no scores are kept, and none are computed of positions
/// that do not look at each other. Flash attention in 16 bits where the GPU has it, else the one of xFormers. A
/// position that is not real looks at itself alone.
///
/// pass       whose dropout the kernel draws
/// q          [B, T, H, D];  k, v  [B, T, K, D]
/// Returns    [B, T, H, D]
/// Source     aten::_flash_attention_forward, aten::_efficient_attention_forward
at::Tensor attend_ragged(const at::Tensor& q_BTHD, const at::Tensor& k_BTKD, const at::Tensor& v_BTKD,
                         const AttentionOptions& options, const AttentionPass& pass);

/// Whether it covers this, `seen` positions that are looked at, elsewhere than on the CPU, and LibTorch's attention
/// over whole rows would need a mask. A plan for a GPU has no notes, and takes it that all are there.
bool fits_ragged(const at::Tensor& q_BTHD, std::int64_t seen, const AttentionOptions& options,
                 const AttentionPass& pass);

}  // namespace components::part
