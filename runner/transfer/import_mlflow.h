#pragma once

#include <string>

#include "runner/core/node.h"

// What MLflow's folders and its servers have in common.

namespace runner::transfer {

/// A parameter of MLflow is text; what reads as a number or a boolean becomes one.
core::Node mlflow_parameter(const std::string& text);

/// RUNNING 1, SCHEDULED 2, FINISHED 3, FAILED 4, KILLED 5; by name or number.
std::string mlflow_status(const std::string& text);

}  // namespace runner::transfer
