#pragma once

#include <string>

namespace runner::train {

struct Experiment;

/// Why a training on a device other than the CPU waits for it in every step: "faults.on_nan is skip, ...". "" if the
/// device can decide by itself whether a step is made. The CPU then waits where results are read: at logged steps, for
/// callbacks that act, and before evaluations and saves.
std::string step_wait_reason(const Experiment& experiment);

}  // namespace runner::train
