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

/// `roux eval`: loss and metrics of one data set, as text or one JSON line.
void evaluate(Session& session, EvalFlags& flags);

/// `roux predict`: a row for each sample.
void predict(Session& session, EvalFlags& flags);

}  // namespace runner::cli
