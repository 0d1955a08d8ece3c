#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/sweep/spec/sweep.h"

namespace runner::sweep {

/// The checks before the first trial.
struct Preflight {
  std::int64_t checked = 0;
  bool all = false;                   ///< all variants were checked
  std::vector<std::string> examples;  ///< a few of them, as text
};

inline constexpr std::int64_t kVariantsMax = 1000;

/// Checks and plans variants: all of a space with at most kVariantsMax, else the corners, each choice and both ends of
/// the rest wherever they are active, and a fixed sample. Parameters and constraints without effect are warnings. Each
/// error is reported once, at its location, with the first variant and the number of others that have it.
Preflight check_variants(const Sweep& sweep,
                         const std::function<void(const resolve::Recipe&, core::Diagnostics&)>& plan,
                         core::Diagnostics& diagnostics);

}  // namespace runner::sweep
