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

/// Ranks that step by themselves, and whose weights become their mean after every `steps` of them.
///
/// Source  Accelerate's LocalSGD
class LocalSgd {
 public:
  /// `parameters` outlive it, and are the same on all ranks.
  LocalSgd(distributed::ProcessGroup& ranks, const std::vector<components::NamedTensor>& parameters,
           std::int64_t steps);

  /// After each optimizer step, by its number from 1. A collective where it is time for the mean.
  void after_step(std::int64_t step);
  /// Takes the mean now, unless no step was taken since the last one. A collective.
  void meet();
  /// Whether the weights of all ranks are the same.
  bool are_one() const { return are_one_; }

 private:
  distributed::ProcessGroup& ranks_;
  const std::vector<components::NamedTensor>& parameters_;
  const std::int64_t steps_;
  bool are_one_ = true;
};

}  // namespace runner::train
