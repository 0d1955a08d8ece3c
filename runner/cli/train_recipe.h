#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

// Shared by `run`, `launch` and `resume`, and by the trials of a sweep.

namespace runner::resolve {
struct Recipe;
}
namespace runner::cli {

struct RunFlags {
  RecipeFlags recipe;
  std::string run;  ///< of `resume`
  bool start_new = false, smoke = false;
  std::string summary_json, checkpoint;
  std::vector<std::string> allow_changes;
  std::string seeds;   ///< of `run`: `1,2,3`
  std::string run_id;  ///< of a new run, for a caller that has to know its folder
};

/// All flags of `run`.
void add_run_flags(Command command, RunFlags& flags);
/// Those that `resume` has, too: --summary-json, --checkpoint, --allow-change.
void add_resume_flags(Command command, RunFlags& flags);

engine::TrainRequest train_request(const Session& session, const RunFlags& flags);
/// Call first in a command that trains: until training begins, a signal leaves with 75.
void begin_training(Session& session);
/// Trains a recipe in this process, or starts its ranks. `may_take_all` as in DeviceEnvironment.
void train(Session& session, const resolve::Recipe& recipe, engine::TrainRequest request, bool may_take_all = false);

/// `roux run`.
void run(Session& session, const RunFlags& flags);
/// `roux run --new` of a recipe that was read before; its one source is what it resolves to. `run_id`: "" makes one.
void train_recipe(Session& session, const resolve::Recipe& recipe, const std::string& run_id);

}  // namespace runner::cli
