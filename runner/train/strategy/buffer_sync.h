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

/// The running statistics of a model that several processes train. They are sums in which each batch weighs less the
/// longer it is ago: a rank adds up what its own batches give, passes by those of the others, and at the end of a step
/// all parts are added. That is what one process would have, to rounding.
class BufferSync {
 public:
  enum class Of { kAll, kFirst };  ///< kFirst: of the first rank's batches alone, `ddp.broadcast_buffers`

  /// `model` and `ranks` live longer.
  BufferSync(components::model::Model& model, distributed::ProcessGroup& ranks, Of of);

  void begin();                        ///< of a step
  void pass_by(std::int64_t batches);  ///< other ranks have the next ones
  void finish();                       ///< of the step: all ranks have the same again. A collective

 private:
  void clear();

  components::model::Model& model_;
  distributed::ProcessGroup& ranks_;
  const Of of_;
  components::NamedTensors buffers_;
};

}  // namespace runner::train
