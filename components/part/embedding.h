#pragma once

#include <cstdint>
#include <string>

#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

/// A table of vectors, `NAME.weight` [rows, width].
class Embedding {
 public:
  Embedding(Declared& declared, const std::string& name, std::int64_t rows, std::int64_t width, const Init& init);

  /// Vectors [..., width] of ids [...]. `sparse`: the gradient is a sparse tensor, for a table whose other use gives a
  /// dense one; only the CPU adds those in a fixed order.
  at::Tensor forward(const at::Tensor& ids, bool sparse = false) const;
  /// The first `count` vectors, [count, width]: of positions.
  at::Tensor first(std::int64_t count) const;
  const at::Tensor& weight() const { return weight_.tensor(); }

 private:
  Weight weight_;
};

}  // namespace components::part
