#pragma once

#include <span>
#include <vector>

namespace components {
class TensorMap;
}
namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// `loader.dispatch_batches`: rank 0 has read batches for all ranks and sends them. A collective. `owners` says whose
/// each of them is; `batches` holds all of them on rank 0, in this order, and is left with the caller's own.
///
/// Source  Accelerate `DataLoaderDispatcher`, which broadcasts a whole round as well
void dispatch_batches(distributed::ProcessGroup& ranks, std::span<const int> owners,
                      std::vector<components::TensorMap>& batches);

}  // namespace runner::train
