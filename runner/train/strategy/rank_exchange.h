#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/strategy/buffer_sync.h"
#include "runner/train/strategy/rank_gradients.h"

namespace runner::train {

/// What ranks exchange in a step: gradients, notes, running statistics.
class RankExchange {
 public:
  RankExchange(const StrategyInputs& inputs, RankGradients::Use use);

  void sync_rng_states();
  void begin_step();
  void before_forward(const Pass& pass);
  /// The notes of all ranks; RunError on every rank if memory ran out on one.
  RankNotes finish(const PassesEnd& end);
  /// Not while gradients are in flight, which start earlier on a busier rank.
  void sync_buffers(std::int64_t others_after);
  RankGradients& gradients() { return gradients_; }
  const RankGradients& gradients() const { return gradients_; }

 private:
  distributed::ProcessGroup& ranks_;
  std::vector<c10::Device> generators_;  // those to synchronize
  RankGradients gradients_;
  std::unique_ptr<BufferSync> buffer_sync_;  // null without running statistics
};

}  // namespace runner::train
