#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "components/quantization/form.h"
#include "runner/artifact/checkpoint_dir.h"

// O: outputs   I: inputs

namespace runner::pretrained {

/// A weight W [O, I] in 4 or 8 bits, as bitsandbytes writes it into a file: views of its tensors, which were checked.
///
/// Source  bitsandbytes 0.50 functional.QuantState.as_dict(), nn.Linear8bitLt._save_to_state_dict()
struct PackedWeight {
  using Kind = components::quantization::Kind;

  Kind kind = Kind::kNf4;
  std::int64_t out = 0, in = 0;  ///< O, I; of 4 bits I is even
  /// Of 4 bits one byte for two numbers, across the ends of rows, whatever type they are stored as; else I8 [O, I].
  artifact::TensorBytes codes;
  /// Of blocks of kBlockOfFourBits numbers, or of the rows of 8 bits: F32. U8 where they are quantised as well.
  artifact::TensorBytes scales;
  artifact::TensorBytes nested_scales;  ///< F32, of blocks of kNestedBlock scales; without a name where there are none
  float nested_offset = 0.0F;           ///< the mean of the scales
  std::vector<artifact::TensorBytes> beside;  ///< the other tensors that it is made of, without `codes`

  bool is_nested() const { return !nested_scales.name.empty(); }

  /// The bytes of one of these tensors, which has as many as `to`.
  static void copy(const artifact::TensorBytes& tensor, std::span<char> to);
  /// The scales [first, first + count).
  std::vector<float> scales_of(std::int64_t first, std::int64_t count) const;
  /// Rows [first, first + count) of W into [count, I].
  void read_rows(std::int64_t first, std::int64_t count, float* to) const;
};

/// What PackedReader calls the type of such a weight: `nf4`, `fp4` or `int8`. No word of safetensors.
const char* packed_word(PackedWeight::Kind kind);
bool is_packed(std::string_view dtype);

}  // namespace runner::pretrained
