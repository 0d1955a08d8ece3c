#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/resolve/load.h"

namespace runner::cli {

/// The processes that bring a run to the recipe's trackers while it trains: `roux sync RUN --tracker NAME --follow`,
/// one a tracker. None of them can stall, stop or take down the training; each ends by itself when the run has ended,
/// even when this process is killed. What they have to say is told as warnings.
class Tracking {
 public:
  Tracking(const Session& session, const resolve::Recipe& recipe);
  ~Tracking();
  /// The run is there. Does not block.
  void begin(const std::string& run_dir);
  /// Waits for all at once, for each up to its `finish_timeout`, and says what is left for `roux sync`.
  void finish();

 private:
  struct Follower;
  void tell_rest(const Follower& follower, const std::string& why) const;

  const Session& session_;
  const resolve::Recipe& recipe_;
  std::string run_dir_;
  std::vector<std::unique_ptr<Follower>> followers_;
};

}  // namespace runner::cli
