#pragma once

#include "runner/core/diagnostics.h"

namespace runner::train {

struct Experiment;

/// With several processes: what the recipe's components do that would differ from one process to the next. What the
/// recipe alone tells is refused by the rule several_processes in runner/recipe/consistency.cpp.
void refuse_what_needs_one_process(const Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::train
