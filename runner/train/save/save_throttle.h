#pragma once

#include <cstdint>
#include <optional>

namespace runner::train {

/// How long a save may take beside the steps, going by the times between the saves so far.
class SaveThrottle {
 public:
  /// Training begins or goes on after `step`, or a save is asked for there. Nothing is learned from two of them at the
  /// same step.
  void note(std::int64_t step, std::int64_t now_ns);
  /// A save had to wait for the one before: from now on none takes longer than it must.
  void note_wait() { crowded_ = true; }

  /// A third of the shortest time between two saves; 0, which is as fast as can be, while that is not known.
  double seconds_for_save() const;

 private:
  std::optional<std::int64_t> step_, shortest_ns_;
  std::int64_t at_ns_ = 0;
  bool crowded_ = false;
};

}  // namespace runner::train
