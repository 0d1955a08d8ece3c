#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::resolve {

/// What a rule between sections is called, for tests and for `roux explain`.
std::vector<std::string> rule_names();

/// The rules between sections (named rows of one table), on a validated recipe; and what the sections settle among
/// themselves, written into the tree with its history: batch algebra (micro_batch_size x gradient_accumulation_steps x
/// launch.num_processes = global_batch_size; any two give the third, a contradiction names both places), `compat`
/// (`accelerate` sets its switches unless they are written), `lr_scheduler.total_steps` from training.max_steps.
/// `meant_metric`: the metric that a word names or most likely means, for hints; "" for none.
void settle(core::Node& recipe, core::Diagnostics& diagnostics,
            const std::function<std::string(const std::string&)>& meant_metric = {});

}  // namespace runner::resolve
