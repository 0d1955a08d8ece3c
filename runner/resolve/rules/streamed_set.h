#pragma once

#include "runner/core/node.h"

namespace runner::resolve {

/// What makes the block of a data set a stream: its `streaming: true`, of a `concat` of streams that of the first one.
/// Null for a set that is read into memory.
const core::Node* streaming_of(const core::Node& set);

}  // namespace runner::resolve
