#pragma once

#include <memory>
#include <string>

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

struct EvalFlags {
  RecipeFlags recipe;
  engine::EvalRequest request;
  std::string format = "text";
};

/// A subcommand that applies a checkpoint to a data set: RECIPE (or a run), --checkpoint, --data, --run.
Command add_eval_command(Command app, const char* name, const char* title, EvalFlags& flags);

/// Runs `work` (evaluate or predict) of the engine.
void evaluate(Session& session, EvalFlags& flags,
              int (engine::Engine::*work)(const resolve::Recipe&, const engine::EvalRequest&, core::Diagnostics&));

}  // namespace runner::cli
