#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runner/core/state.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// A part of the training with a state per rank: rank 0 saves the states of all, and each rank restores its own. A rank
/// without a saved state (there are more ranks than before) starts with the part of rank 0's state that is common to
/// all: see distributed::kPerRankState.
class RankStates final : public core::Stateful {
 public:
  RankStates(distributed::ProcessGroup& ranks, core::Stateful& part);
  ~RankStates() override;

  /// Call before each save; a collective. Rank 0 then holds the tensors of all.
  void gather(const char* site);
  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  struct Held;

  distributed::ProcessGroup& ranks_;
  core::Stateful& part_;
  std::vector<Held> held_;  // by rank; empty except on rank 0
};

}  // namespace runner::train
