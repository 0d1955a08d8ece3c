#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "components/data/data.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"

namespace components::data {

/// What a batch of samples of all sets holds: the tensors of each, as long as the longest, with a mask where lengths
/// differ. Nothing, and an error at the set, where one holds other tensors or ids of another tokenizer.
std::optional<BatchSpec> joined_signature(const std::vector<std::shared_ptr<const Dataset>>& sets,
                                          const Inputs& inputs);

/// Samples of a batch that come from one set.
struct RowsOfSet {
  TensorMap tensors;               ///< of the set's signature
  std::vector<std::int64_t> rows;  ///< which ones of the batch they are
};

/// Writes the tensors of `signature` for the rows of all sets, shorter ones filled as the first set fills them.
void join_rows(std::span<const RowsOfSet> sets, const BatchSpec& signature, const Dataset& first, TensorMap& batch);

}  // namespace components::data
