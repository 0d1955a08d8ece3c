#pragma once

#include <optional>

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// The plan of a recipe, of whose weights on servers the headers alone are fetched. Nothing when the session failed.
std::optional<engine::Plan> plan_recipe(Session& session, const RecipeFlags& flags);

}  // namespace runner::cli
