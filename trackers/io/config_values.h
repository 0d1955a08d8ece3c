#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace trackers {

/// A recipe as a flat list of hyperparameters for trackers: `optimizer.lr`, `callbacks.0.patience`. Nulls and empty
/// mappings and lists are omitted.
std::vector<std::pair<std::string, runner::core::Node>> config_values(const runner::core::Node& config);

}  // namespace trackers
