#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace runner::train {

/// This process among those that share a copy.
struct ShardPlace {
  int index = 0, count = 1;
  std::optional<int> owner = {};  ///< of a parameter that is not divided: the process that has all of its rows
  bool replicated = false;        ///< or every process has all of them
  /// Above 0: every process but the last begins with a block of this many elements of the parameter, and the state of a
  /// block may have one element.
  std::int64_t block = 0;

  ShardPlace of(int process) const { return {process, count, owner, replicated, block}; }
  /// Whether this process is the one that counts and saves what it has of the parameter.
  bool counts() const { return !replicated || index == 0; }
};

/// Rows [first, first + count) of the first dimension.
struct Rows {
  std::int64_t first = 0, count = 0;
};

/// Those of one process, as torch.chunk divides them: all have as many, rounded up, as long as there are any; with
/// blocks rounded up to rows that are whole blocks. A process may have none. Where there is an owner, it has all, and
/// the others have none behind them.
///
/// row_elements  of each row
inline Rows rows_of(std::int64_t rows, std::int64_t row_elements, const ShardPlace& place) {
  if (place.replicated) return {0, rows};
  if (place.owner) return *place.owner == place.index ? Rows{0, rows} : Rows{rows, 0};
  const std::int64_t together = place.block > 0 ? place.block / std::gcd(place.block, row_elements) : 1;
  const std::int64_t least = (rows + place.count - 1) / place.count;
  const std::int64_t each = (least + together - 1) / together * together;
  const std::int64_t first = std::min(rows, each * place.index);
  return {first, std::min(each, rows - first)};
}

/// A process's rows of a tensor, in its memory; a tensor without dimensions is one row.
at::Tensor shard_of(const at::Tensor& whole, const ShardPlace& place);
/// Where they lie.
core::RowsPlace place_of(const at::Tensor& whole, const ShardPlace& place);
/// Those of a tensor with one element for each block of the parameter, which has no owner; a replicated one has all.
Rows blocks_of(const at::Tensor& whole, const ShardPlace& place);
/// How many blocks the whole parameter has; 0 without blocks.
std::int64_t block_count(const at::Tensor& whole, const ShardPlace& place);
/// Its shape, also where the tensor has no memory.
std::vector<std::int64_t> shard_sizes(const at::Tensor& whole, const ShardPlace& place);
inline std::int64_t count_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

/// The owner of each parameter among `processes`, which then have about as many elements. The largest ones are
/// dealt first: the same on every process.
std::vector<int> deal(const components::NamedTensors& parameters, int processes);

}  // namespace runner::train
