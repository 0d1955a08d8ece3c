#pragma once

#include "runner/cli/session.h"

namespace runner::cli {

/// What `launch` would be here and where that was said (flags, environment, the recipe or none, the file of this
/// machine), who started this process, and what can start others. Prints it; what is wrong with it is told, too.
void show_launch(Session& session, const RecipeFlags& flags);

}  // namespace runner::cli
