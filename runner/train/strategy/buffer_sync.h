#pragma once

#include <cstdint>
#include <vector>

#include "components/tensor/tensors.h"

namespace components::model {
class Model;
}
namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// Synchronizes the running statistics of a model trained by several processes. They are exponentially weighted sums: a
/// rank adds its own batches, only decays for those of the others, and at the end of a step all parts are summed. Up to
/// rounding this equals one process.
class BufferSync {
 public:
  enum class Of { kAll, kFirst };  ///< kFirst: of the first rank's batches alone, `ddp.broadcast_buffers`

  /// `model` and `ranks` outlive this.
  BufferSync(components::model::Model& model, distributed::ProcessGroup& ranks, Of of);

  void begin();                             ///< begin of a step
  void skip_batches(std::int64_t batches);  ///< the next micro-batches belong to other ranks
  void finish();                            ///< end of a step: all ranks have the same again. A collective

 private:
  void clear();

  components::model::Model& model_;
  distributed::ProcessGroup& ranks_;
  const Of of_;
  components::NamedTensors buffers_;
};

}  // namespace runner::train
