#include "runner/review/recorded_curves.h"

#include <bit>
#include <cmath>

#include "runner/store/database/wall_clock.h"
#include "runner/store/run_reader.h"
#include "runner/store/system_metrics.h"

namespace runner::review {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

core::Result<RecordedCurves> curves_of(const std::string& run_dir) {
  const auto details = store::read_details(run_dir);
  if (!details) return details.failure();
  RecordedCurves curves;
  for (const store::SeriesSummary& series : details.value().series) {
    if (store::is_wall_clock(series.name) || series.context == store::kSystemContext) continue;
    const auto points = store::read_series(run_dir, series.name, series.context);
    if (!points) return points.failure();
    for (const store::SeriesPoint& point : points.value()) curves[series.key()][point.step] = point.value;
  }
  return curves;
}

bool same_curves(const std::string& first, const std::string& again) {
  const auto left = curves_of(first), right = curves_of(again);
  if (!left || !right) return false;
  bool compared = false;
  for (const auto& [name, points] : left.value()) {
    const auto other = right.value().find(name);
    if (other == right.value().end()) continue;
    for (const auto& [step, value] : points) {
      const auto same = other->second.find(step);
      if (same == other->second.end()) continue;
      if (!same_bits(value, same->second)) return false;
      compared = true;
    }
  }
  return compared;
}

}  // namespace runner::review
