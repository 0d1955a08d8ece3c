#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runner/core/node.h"
#include "runner/pretrained/packed/packed_weight.h"

// O: outputs   I: inputs

namespace runner::pretrained {

/// How weights are packed.
struct PackForm {
  PackedWeight::Kind kind = PackedWeight::Kind::kNf4;
  bool double_quant = false;  ///< of 4 bits: the scales in 8 bits as well

  /// Of a recipe's `quantization` with all keys.
  static PackForm of(const core::Node& quantization);
};

/// The content of the tensors of a PackedWeight.
struct Packed {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> nested_codes;  ///< in place of the scales of blocks, where these are quantised
  std::vector<float> scales;               ///< else; or of blocks of those
  float nested_offset = 0.0F;

  /// As of a file. It borrows this one.
  PackedWeight view(const PackForm& form, std::int64_t out, std::int64_t in) const;
};

/// Packs W [O, I] as bitsandbytes does, with all threads; the result does not depend on their number. Of 4 bits I is
/// even.
Packed pack(std::span<const float> weight_OI, std::int64_t in, const PackForm& form);

/// `run(first, last)` for pieces of `count` things, of at least `grain`, by all threads of the machine.
void for_pieces(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& run);

}  // namespace runner::pretrained
