#pragma once

#include <cstdint>
#include <optional>

namespace runner::train {

/// How long a background save may take, estimated from the times between the saves so far.
class SaveThrottle {
 public:
  /// Call when training begins or resumes after `step`, and when a save is requested there. Two calls for one step
  /// teach nothing.
  void note(std::int64_t step, std::int64_t now_ns);
  /// A save had to wait for the previous one: from now on saves are not slowed down.
  void note_wait() { crowded_ = true; }

  /// A third of the shortest time between two saves; 0 (full speed) until that is known.
  double seconds_for_save() const;

 private:
  std::optional<std::int64_t> step_, shortest_ns_;
  std::int64_t at_ns_ = 0;
  bool crowded_ = false;
};

}  // namespace runner::train
