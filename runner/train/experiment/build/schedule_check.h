#pragma once

#include <cstdint>

#include "components/lr_scheduler/lr_scheduler.h"
#include "runner/core/diagnostics.h"

namespace runner::train {

/// Warns of a schedule that trains nothing from some step on, or is still in its warm-up when the training ends.
///
/// steps  of the optimizer; 0: unknown, nothing is checked
/// unit   schedule steps per optimizer step
void check_schedule(const components::lr_scheduler::Scheduler& scheduler, std::int64_t steps, std::int64_t unit,
                    const core::Location& location, core::Diagnostics& diagnostics);

}  // namespace runner::train
