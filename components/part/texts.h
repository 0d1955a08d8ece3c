#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "components/ops/dropout.h"

namespace components {
class TensorMap;
}

namespace components::part {

/// Padded rows without their padding: one row of N positions, text after text, each a beginning of its padded row.
struct Texts {
  std::vector<std::int64_t> begins;  ///< [B + 1]: where each text begins in the row, and N
  at::Tensor places;                 ///< [N] int64: the place of each position among the B * T of the padded rows
  std::int64_t padded = 0;           ///< T
  std::int64_t longest = 0;          ///< positions of one text, at least 1 and at most T

  std::int64_t count() const { return static_cast<std::int64_t>(begins.size()) - 1; }
  std::int64_t positions() const { return begins.back(); }

  /// [B, T, ...] to [1, N, ...].
  at::Tensor gathered(const at::Tensor& padded_BT) const;
  /// [1, N, ...] to [B, T, ...] with zeros at the padding.
  at::Tensor padded_out(const at::Tensor& gathered_1N) const;
  /// [1, N, C] to [B, C].
  at::Tensor first_of_each(const at::Tensor& gathered_1N) const;
  /// The same masks by the positions of the padded rows, so that both forms of a batch drop the same elements.
  Dropout of_places(const Dropout& dropout) const;
};

/// The texts of a mask [B, T] on the CPU, true at real positions. Nothing where no position is padding, or where
/// padding stands before a real position. A row of nothing but padding is a text of its first position, which then
/// looks at itself alone, as it does in the padded row.
std::optional<Texts> texts_of(const at::Tensor& mask_BT);

/// Leaves them in the map for the blocks that follow, as kTextBegins and kTextPlaces.
void note_texts(TensorMap& activations, const Texts& texts);
/// Those of a stream that was gathered; nothing where x is the padded [B, T, C].
std::optional<Texts> noted_texts(const TensorMap& activations, const at::Tensor& x);

}  // namespace components::part
