#pragma once

#include <cstdint>
#include <functional>

#include "runner/core/diagnostics.h"
#include "runner/sweep/spec/sweep.h"

namespace runner::sweep {

/// What was looked at before the first trial.
struct Preflight {
  std::int64_t checked = 0;
  bool all = false;  ///< every variant that there is
};

inline constexpr std::int64_t kVariantsMax = 1000;

/// Checks and plans variants: all of a space that has at most kVariantsMax, else the corners, each choice and
/// both ends of the rest wherever a condition lets them play a part, and a sample that is the same each time. What the
/// sweep varies or demands in vain is a warning. What is wrong is told once, at its place, with the first variant that
/// has it and how many more do.
Preflight look_ahead(const Sweep& sweep, const std::function<void(const resolve::Recipe&, core::Diagnostics&)>& plan,
                     core::Diagnostics& diagnostics);

}  // namespace runner::sweep
