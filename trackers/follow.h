#pragma once

#include <cstdint>
#include <string>

#include "runner/core/clock.h"
#include "trackers/tracker.h"

namespace trackers {

/// How the follower waits; tests do not.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// Blocks for this long; false when it is time to exit.
  virtual bool wait(std::int64_t ms) = 0;
};

struct FollowOptions {
  std::string name;        ///< of the tracker in this run: the key of its cursor
  bool until_end = false;  ///< wait for more while the run is active, and for a tool that is down
};

struct FollowResult {
  std::int64_t points = 0;           ///< sent
  std::int64_t rejected_points = 0;  ///< points that the tool does not accept
  std::string problem, hint;         ///< why it did not finish; "" when it did
};

/// Sends what a run has written since the last time to one tracker, each point once: the cursor moves after the tracker
/// has flushed, together with the state that the tracker needs to rewind.
///
/// Blocks until everything is sent, with `until_end` until the run has ended. Refusals are in the result or, while
/// retrying, logged as warnings. RunError when the run itself cannot be read.
FollowResult follow(const Run& run, Tracker& tracker, const FollowOptions& options, const runner::core::Clock& clock,
                    Waiter& waiter);

}  // namespace trackers
