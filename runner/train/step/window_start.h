#pragma once

#include <optional>

#include "components/tensor/buffer_snapshot.h"
#include "components/tensor/random_state.h"
#include "runner/train/data/loader.h"

namespace runner::train {

struct Experiment;

/// Where a window began, so that its passes can be undone.
class WindowStart {
 public:
  /// What to keep: the random numbers, and the buffers of the model (running statistics).
  struct Kept {
    bool random = false, buffers = false;
  };
  /// `experiment` outlives this.
  explicit WindowStart(const Experiment& experiment) : experiment_(experiment) {}

  void keep(Kept kept) { kept_ = kept; }
  void note(const Loader::Position& position);
  const Loader::Position& position() const { return position_; }
  const components::RandomState& random() const { return random_; }
  /// Returns random numbers and buffers to what they were.
  void restore() const;

 private:
  const Experiment& experiment_;
  Kept kept_;
  Loader::Position position_;
  components::RandomState random_;
  std::optional<components::BufferSnapshot> buffers_;
};

}  // namespace runner::train
