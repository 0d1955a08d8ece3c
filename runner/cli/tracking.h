#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::cli {

/// Warns of trackers that keep nothing here and have no server to send to, as the run would before its first step.
void warn_of_missing_servers(Session& session, const resolve::Recipe& recipe);

/// The processes that send a run to the recipe's trackers while it trains: `roux sync RUN --tracker NAME --follow`, one
/// per tracker. None of them can block, stop or crash the training. Each ends when the run has ended, even when this
/// process is killed. Their messages are logged as warnings.
class Tracking {
 public:
  Tracking(const Session& session, const resolve::Recipe& recipe);
  ~Tracking();
  /// Call when the folder of the run exists. Does not block.
  void begin(const std::string& run_dir);
  /// Waits for all of them, up to their `finish_timeout`, and warns about what is left for `roux sync`.
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
