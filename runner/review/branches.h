#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/store/run_reader.h"

namespace runner::review {

/// One line of a plot: the points of a branch's lineage, or, of an abandoned stretch, those that are its own.
struct BranchCurve {
  std::int64_t branch = 0;
  bool abandoned = false;
  std::vector<store::SeriesPoint> points;
};

/// The number that `--branch` gives, -1 for "" and `all`.
std::int64_t branch_number(const std::string& branch);

/// The curves of a metric: one for a branch, and for `all` the newest one first and then what was abandoned. Nothing
/// when `diagnostics` has the reason.
std::optional<std::vector<BranchCurve>> branch_curves(const std::string& run_dir, const std::string& metric,
                                                      const std::string& branch, core::Diagnostics& diagnostics);

/// One line a branch: where it left its parent, how far it went, what is left of it, why there is another.
std::string branches_lines(const std::vector<store::BranchRow>& branches);

}  // namespace runner::review
