#pragma once

#include <string>

#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// What `roux sync --tracker` calls it: its `name`, or its type.
std::string tracker_name(const core::Node& tracker);

/// How far each tracker of a run has come, one line each; "" for a run without trackers.
std::string trackers_lines(const store::RunSummary& run, const core::Clock& clock);
/// The same for a program.
core::Node trackers_json(const store::RunSummary& run);

}  // namespace runner::review
