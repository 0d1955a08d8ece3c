#pragma once

#include <optional>

#include "runner/engine/engine.h"

namespace runner::engine {

/// What `roux env --measure` found on this processor with this many threads; one JSON file a machine below
/// core::cache_dir(). Nothing when it was never measured.
std::optional<MachineLimits> read_limits(int threads);
void write_limits(const MachineLimits& limits);

}  // namespace runner::engine
