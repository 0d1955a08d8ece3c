#pragma once

#include <cstdint>
#include <vector>

namespace components {
struct NamedTensor;
}
namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// Ranks step independently and average their weights after every `steps` steps.
///
/// Source  Accelerate's LocalSGD
class LocalSgd {
 public:
  /// `parameters` outlive this and are the same on all ranks.
  LocalSgd(distributed::ProcessGroup& ranks, const std::vector<components::NamedTensor>& parameters,
           std::int64_t steps);

  /// Call after each optimizer step, counted from 1. A collective when averaging is due.
  void after_step(std::int64_t step);
  /// Averages the weights now, unless no step was made since the last time. A collective.
  void average();
  /// Whether the weights of all ranks are the same.
  bool in_sync() const { return in_sync_; }

 private:
  distributed::ProcessGroup& ranks_;
  const std::vector<components::NamedTensor>& parameters_;
  const std::int64_t steps_;
  bool in_sync_ = true;
};

}  // namespace runner::train
