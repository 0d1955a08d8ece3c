#pragma once

#include <string>

#include "runner/cli/flags.h"

namespace runner::cli {

class Session;

struct ReproduceFlags {
  RecipeFlags recipe;  ///< its path is `--recipe`; "" for the recorded recipe
  std::string run;
};

/// Trains a recorded run again under another name, prints what differs from then, and the first metric or tensor that
/// does. Fails in `session` when one does. Takes as long as the run.
void reproduce(Session& session, ReproduceFlags& flags);

}  // namespace runner::cli
