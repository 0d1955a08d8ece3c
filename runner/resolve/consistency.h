#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/resolve/rules/settled_tree.h"

namespace runner::resolve {

/// Names of the rules between sections: a test checks that each has a case.
std::vector<std::string> rule_names();

/// The rules between sections (named rows of one table), on a validated recipe; and what the sections settle among
/// themselves, written into the tree with its history: batch algebra (micro_batch_size x gradient_accumulation_steps x
/// launch.num_processes = global_batch_size; any two give the third, a contradiction names both locations), `compat`
/// (`accelerate` sets its switches unless they are written), `lr_scheduler.total_steps` from training.max_steps.
void settle(core::Node& recipe, core::Diagnostics& diagnostics, SettleContext context = {});

/// The rules that read the device, again, once `auto` is settled.
void settle_by_device(core::Node& recipe, core::Diagnostics& diagnostics);
/// The same for their errors alone.
void check_device(const core::Node& recipe, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
