#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace runner::train {

/// This process among those that share a copy.
struct ShardPlace {
  int index = 0, count = 1;
};

/// Rows [first, first + count) of the first dimension.
struct Rows {
  std::int64_t first = 0, count = 0;
};

/// Those of one process, as torch.chunk divides them: all have as many, rounded up, as long as there are any. A process
/// may have none.
inline Rows rows_of(std::int64_t rows, const ShardPlace& place) {
  const std::int64_t each = (rows + place.count - 1) / place.count;
  const std::int64_t first = std::min(rows, each * place.index);
  return {first, std::min(each, rows - first)};
}

/// A process's rows of a tensor, in its memory; a tensor without dimensions is one row.
at::Tensor shard_of(const at::Tensor& whole, const ShardPlace& place);
/// Where they lie.
core::RowsPlace place_of(const at::Tensor& whole, const ShardPlace& place);
/// Its shape, also where the tensor has no memory.
std::vector<std::int64_t> shard_sizes(const at::Tensor& whole, const ShardPlace& place);
inline std::int64_t count_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

}  // namespace runner::train
