#pragma once

#include <memory>

namespace runner::train {

struct Experiment;
class GradientStrategy;

/// The strategy for the recipe, its optimizer and the number of processes; nothing of it is built before its begin().
std::shared_ptr<GradientStrategy> make_strategy(const Experiment& experiment);

}  // namespace runner::train
