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

/// `loader.dispatch_batches`: rank 0 reads the batches of all ranks and sends them. A collective. `owners` holds the
/// rank of each batch; on rank 0 `batches` holds all of them in this order, and each caller is left with its own.
///
/// Source  Accelerate `DataLoaderDispatcher`, which broadcasts a whole round as well
void dispatch_batches(distributed::ProcessGroup& ranks, std::span<const int> owners,
                      std::vector<components::TensorMap>& batches);

}  // namespace runner::train
