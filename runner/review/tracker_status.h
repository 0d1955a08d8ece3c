#pragma once

#include <string>

#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// The name for `roux sync --tracker`: its `name`, or its type.
std::string tracker_name(const core::Node& tracker);

/// The progress of each tracker of a run, one line each; "" without trackers.
std::string trackers_lines(const store::RunSummary& run, const core::Clock& clock);
/// The same as JSON.
core::Node trackers_json(const store::RunSummary& run);

}  // namespace runner::review
