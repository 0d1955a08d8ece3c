#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runner/core/state.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// A part of the training of which each rank has a state of its own: what the first rank saves is the state of all of
/// them, and each takes its own back. One that a checkpoint knows no state of, as where there are more ranks than
/// before, begins with what the first one has in common with all: see distributed::kOwnState.
class RankStates final : public core::Stateful {
 public:
  RankStates(distributed::ProcessGroup& ranks, core::Stateful& part);
  ~RankStates() override;

  /// Before each save; a collective. The first rank then holds the tensors of all.
  void gather(const char* site);
  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  struct Held;

  distributed::ProcessGroup& ranks_;
  core::Stateful& part_;
  std::vector<Held> held_;  // by rank; empty but on the first one
};

}  // namespace runner::train
