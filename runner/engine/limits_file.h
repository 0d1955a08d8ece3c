#pragma once

#include <optional>

#include "runner/engine/engine.h"

namespace runner::engine {

/// The result of `roux env --measure` on this CPU with this many threads; one JSON file per machine below
/// core::cache_dir(). Nothing when never measured.
std::optional<MachineLimits> read_limits(int threads);
void write_limits(const MachineLimits& limits);

}  // namespace runner::engine
