#pragma once

#include <cstdint>
#include <string>

#include "runner/core/clock.h"
#include "trackers/tracker.h"

namespace trackers {

/// How the one that follows waits; tests do not.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// Blocks for so long; false when it is time to leave.
  virtual bool wait(std::int64_t ms) = 0;
};

struct FollowOptions {
  std::string name;        ///< of the tracker in this run: the key of its cursor
  bool until_end = false;  ///< wait for more while the run goes on, and for a tool that is down
};

struct FollowResult {
  std::int64_t points = 0;    ///< brought over
  std::int64_t left_out = 0;  ///< points that the tool does not take
  std::string problem, hint;  ///< why it did not come to the end; "" when it did
};

/// Brings what a run has written since the last time to one tracker, each point once: the cursor moves after the
/// tracker has flushed, and with it what the tracker needs to take back anything later.
///
/// Blocks until everything is over, with `until_end` until the run has ended. What the tool refuses is in the result
/// or, while it is tried again, told as a warning. RunError when the run itself cannot be read.
FollowResult follow(const Run& run, Tracker& tracker, const FollowOptions& options, const runner::core::Clock& clock,
                    Waiter& waiter);

}  // namespace trackers
