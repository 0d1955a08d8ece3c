#pragma once

#include <cstdint>
#include <string>

#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

/// A table of vectors, `NAME.weight` [rows, width].
class Embedding {
 public:
  /// `padding`: a row that begins as zero and gets no gradient from here, torch's padding_idx; -1: none.
  Embedding(Declared& declared, const std::string& name, std::int64_t rows, std::int64_t width, const Init& init,
            std::int64_t padding = -1);
  /// A table of another block.
  explicit Embedding(const at::Tensor& shared);

  /// Vectors [..., width] of ids [...], float32 under autocast. `sparse`: the gradient is a sparse tensor, for a table
  /// whose other use gives a dense one; only the CPU adds those in a fixed order.
  at::Tensor forward(const at::Tensor& ids, bool sparse = false) const;
  /// The first `count` vectors, [count, width]: of positions.
  at::Tensor first(std::int64_t count) const;
  const at::Tensor& weight() const { return weight_.tensor(); }

 private:
  Weight weight_;
  std::int64_t padding_;
};

}  // namespace components::part
