#pragma once

#include <optional>
#include <string>

#include "runner/cli/session.h"
#include "runner/resolve/load.h"

namespace runner::cli {

/// The device of a recipe on this machine: `cpu`, `cuda:1`. `auto` is the first GPU if GPU support loads, sees one and
/// can train this recipe. Loads GPU support for a GPU; call it before the engine. Nothing when this machine cannot
/// train on the device that the recipe names: the error has been shown.
std::optional<std::string> device_here(Session& session, const resolve::Recipe& recipe);

}  // namespace runner::cli
