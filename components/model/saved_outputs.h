#pragma once

#include <cstddef>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace c10 {
class OperatorHandle;
}

namespace components::model {

/// The outputs of matrix products, convolutions and fused attention of one pass of this thread, so that a second pass
/// over the same operations reuses them: only cheap operations are repeated. An output that was overwritten later is
/// not kept, but recomputed.
class SavedOutputs {
 public:
  SavedOutputs();
  ~SavedOutputs();
  SavedOutputs(const SavedOutputs&) = delete;
  SavedOutputs& operator=(const SavedOutputs&) = delete;

  /// Keeps what is computed while it lives.
  class Keeping {
   public:
    explicit Keeping(SavedOutputs& products);
    ~Keeping();
    Keeping(const Keeping&) = delete;
    Keeping& operator=(const Keeping&) = delete;

   private:
    SavedOutputs& products_;
  };

  /// Returns the saved outputs while it lives, each once. RUNNER_ASSERT when operations or their order differ.
  class Taking {
   public:
    explicit Taking(SavedOutputs& products);
    ~Taking();
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;
  };

  void keep(const c10::OperatorHandle& operation, std::vector<at::Tensor> outputs);
  /// The outputs of the next operation; none if they must be recomputed.
  std::vector<at::Tensor> take(const c10::OperatorHandle& operation);
  bool is_taken() const { return taking_; }

 private:
  struct Entry;

  void drop_overwritten();

  std::vector<Entry> entries_;
  std::size_t next_ = 0;
  bool taking_ = false;
};

}  // namespace components::model
