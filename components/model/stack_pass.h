#pragma once

#include <cstdint>
#include <optional>

#include "components/model/stack.h"
#include "components/ops/dropout.h"
#include "components/part/norm.h"
#include "runner/core/tensor_fwd.h"

// What the blocks of a stack share.

namespace components::model {

/// `x` with that mask of the dropout, where there is one.
at::Tensor drop(at::Tensor x, const std::optional<Dropout>& dropout, double rate, std::uint32_t mask);

/// kPositions, where a row holds several documents. Elsewhere than on the CPU they are not read, and taken.
at::Tensor packed_positions(const at::Tensor& positions_BT);

/// Of the stream.
part::NormOptions norm_of(const StackOptions& options);

}  // namespace components::model
