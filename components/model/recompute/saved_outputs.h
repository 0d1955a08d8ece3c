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
  class RecordGuard {
   public:
    explicit RecordGuard(SavedOutputs& outputs);
    ~RecordGuard();
    RecordGuard(const RecordGuard&) = delete;
    RecordGuard& operator=(const RecordGuard&) = delete;

   private:
    SavedOutputs& outputs_;
  };

  /// Returns the saved outputs while it lives, each once. RUNNER_ASSERT when operations or their order differ.
  class ReplayGuard {
   public:
    explicit ReplayGuard(SavedOutputs& outputs);
    ~ReplayGuard();
    ReplayGuard(const ReplayGuard&) = delete;
    ReplayGuard& operator=(const ReplayGuard&) = delete;
  };

  void keep(const c10::OperatorHandle& operation, std::vector<at::Tensor> outputs);
  /// The outputs of the next operation; none if they must be recomputed.
  std::vector<at::Tensor> take(const c10::OperatorHandle& operation);
  bool is_replaying() const { return replaying_; }

 private:
  struct Entry;

  void drop_overwritten();

  std::vector<Entry> entries_;
  std::size_t next_ = 0;
  bool replaying_ = false;
};

}  // namespace components::model
