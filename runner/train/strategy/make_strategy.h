#pragma once

#include <memory>
#include <optional>

#include "runner/train/experiment/experiment.h"

namespace runner::train {

class GradientStrategy;

/// The strategy for the recipe, its optimizer and the number of processes; nothing of it is built before its begin().
std::shared_ptr<GradientStrategy> make_strategy(const Experiment& experiment);

/// The same for a process that does by itself what the recipe shares out among several.
std::shared_ptr<GradientStrategy> make_lone_strategy(const Experiment& experiment);

/// What this process keeps of the parameters before the strategy has them; nothing: all of them.
std::optional<KeptRows> rows_to_keep(const resolve::Recipe& recipe, int rank);

}  // namespace runner::train
