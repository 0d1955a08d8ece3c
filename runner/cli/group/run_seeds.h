#pragma once

#include <string>

#include "runner/cli/train_recipe.h"

namespace runner::cli {

/// `roux run --seeds 1,2,3`: runs this command once for each seed, one after the other, as `NAME-seed1` and so on, and
/// compares the group of them. What has finished with this recipe is not trained again, unless `--new` asks for it, and
/// what was stopped is resumed. Ends with the first run that does not finish, and with its exit status.
void run_seeds(Session& session, const RunFlags& flags);

}  // namespace runner::cli
