#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/store/run_reader.h"

namespace runner::review {

/// A curve of a plot: the points of a branch's lineage; for an abandoned branch only its own points.
struct BranchCurve {
  std::int64_t branch = 0;
  bool abandoned = false;
  std::vector<store::SeriesPoint> points;
};

/// The number of `--branch`; -1 for "" and `all`.
std::int64_t branch_number(const std::string& branch);

/// The curves of a metric: one for a branch; for `all` the newest, then the abandoned ones. Nothing when `diagnostics`
/// has the reason.
std::optional<std::vector<BranchCurve>> branch_curves(const std::string& run_dir, const std::string& metric,
                                                      const std::string& branch, core::Diagnostics& diagnostics);

/// One line per branch: where it left its parent, its last step, what is left of it, and why the next began.
std::string branches_lines(const std::vector<store::BranchRow>& branches);

}  // namespace runner::review
