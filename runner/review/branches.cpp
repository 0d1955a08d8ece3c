#include "runner/review/branches.h"
#include "runner/core/text/utf8.h"

#include <charconv>

#include "runner/store/database/text.h"
#include "runner/terminal/text.h"

namespace runner::review {
namespace {

using store::BranchRow;
using store::SeriesPoint;

std::optional<std::vector<SeriesPoint>> read(const std::string& run_dir, const std::string& metric, std::int64_t branch,
                                             core::Diagnostics& diagnostics) {
  auto points = store::read_series(run_dir, metric, "train", branch);
  if (points) return std::move(points).value();
  diagnostics.error({}, points.failure().message, points.failure().hint);
  return std::nullopt;
}

}  // namespace

std::int64_t branch_number(const std::string& branch) {
  std::int64_t number = -1;
  std::from_chars(branch.data(), branch.data() + branch.size(), number);
  return number;
}

std::optional<std::vector<BranchCurve>> branch_curves(const std::string& run_dir, const std::string& metric,
                                                      const std::string& branch, core::Diagnostics& diagnostics) {
  auto points = read(run_dir, metric, branch_number(branch), diagnostics);
  if (!points) return std::nullopt;
  std::vector<BranchCurve> curves = {{branch_number(branch), false, std::move(*points)}};
  if (branch != "all") return curves;
  const auto details = store::read_details(run_dir);
  if (!details) {
    diagnostics.error({}, details.failure().message, details.failure().hint);
    return std::nullopt;
  }
  const std::vector<BranchRow>& branches = details.value().branches;
  if (!branches.empty()) curves.front().branch = branches.back().id;
  for (const BranchRow& row : branches) {
    const std::int64_t from = row.kept_to.value_or(row.step);
    if (row.last_step <= from) continue;  // nothing of it was abandoned
    points = read(run_dir, metric, row.id, diagnostics);
    if (!points) return std::nullopt;
    std::erase_if(*points, [from](const SeriesPoint& point) { return point.step <= from; });
    if (!points->empty()) curves.push_back({row.id, true, std::move(*points)});
  }
  return curves;
}

std::string branches_lines(const std::vector<BranchRow>& branches) {
  std::string text;
  for (const BranchRow& row : branches) {
    text += "  " + std::to_string(row.id) + "  ";
    text += row.parent < 0 ? "from the start"
                           : "from branch " + std::to_string(row.parent) + " at step " + std::to_string(row.step);
    text += row.points == 0 ? ", nothing logged" : ", to step " + std::to_string(row.last_step);
    if (!row.kept_to) {
      text += ", abandoned";
    } else if (*row.kept_to < row.last_step) {
      text += ", abandoned after step " + std::to_string(*row.kept_to);
    }
    if (&row == &branches.back()) text += " (current)";
    if (!row.why.empty()) text += "; " + core::escape_for_terminal(row.why);
    text += "; " + store::utc_text(row.time_ms) + "\n";
  }
  return text;
}

}  // namespace runner::review
