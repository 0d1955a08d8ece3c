#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/engine/engine.h"
#include "runner/recipe/compose.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

/// The recipe of the model that generates: for a folder of Transformers, of a run, or a file, as `flags.path` says.
/// Sets the checkpoint and the run of `request`. `forced`: changes beside those of the command line. Nothing when the
/// session failed.
std::optional<resolve::Recipe> load_model_recipe(Session& session, RecipeFlags& flags, engine::GenerateRequest& request,
                                                 const std::vector<recipe::Override>& forced = {});

/// Warns of flags for drawing tokens, where none is drawn, and for beams, where there is one. A recipe may have them
/// for other calls.
void warn_of_idle_flags(const Session& session, const resolve::Recipe& recipe);

/// Says that one process does the work, where the recipe names more. `what`: `a chat`.
void tell_one_process(const resolve::Recipe& recipe, const std::string& what);

/// The engine, with the recipe's device settled, for this process or, with `request.rank`, its rank. Null when the
/// session failed.
engine::Engine* engine_for(Session& session, resolve::Recipe& recipe, engine::GenerateRequest& request);

}  // namespace runner::cli
