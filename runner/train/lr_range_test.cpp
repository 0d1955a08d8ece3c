#include "runner/train/lr_range_test.h"

#include <algorithm>
#include <cmath>

namespace runner::train {
namespace {

constexpr std::size_t kLastLeftOut = 5;  // where the loss already diverges
constexpr std::size_t kPointsMin = 3;
constexpr double kNotYetFalling = 0.05;  // of the whole descent

/// The middle of the longest decreasing subsequence of the points.
double valley(const std::vector<LrPoint>& points) {
  std::vector<std::size_t> lengths(points.size(), 1);
  std::size_t end = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (points[i].smoothed < points[j].smoothed) lengths[i] = std::max(lengths[i], lengths[j] + 1);
    }
    if (lengths[i] > lengths[end]) end = i;
  }
  const double third = static_cast<double>(lengths[end]) / 3.0;
  const std::size_t begin = end - std::min(end, lengths[end]);
  return points[begin + static_cast<std::size_t>(third) + static_cast<std::size_t>(third / 2.0)].lr;
}

/// With distances between rates on a logarithmic axis.
double steepest(const std::vector<LrPoint>& points) {
  std::size_t best = 0;
  double least = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double slope =
        (points[i + 1].smoothed - points[i].smoothed) / (std::log(points[i + 1].lr) - std::log(points[i].lr));
    if (i > 0 && slope >= least) continue;
    least = slope;
    best = i;
  }
  return points[best].lr;
}

/// From where the loss starts to fall to its minimum: on the plateau before, noise alone makes descents.
std::vector<LrPoint> descent_of(const std::vector<LrPoint>& points) {
  const auto lower = [](const LrPoint& a, const LrPoint& b) { return a.smoothed < b.smoothed; };
  const auto least = std::min_element(points.begin(), points.end(), lower);
  const double top = std::max_element(points.begin(), least + 1, lower)->smoothed;
  const double fallen = top - kNotYetFalling * (top - least->smoothed);
  auto first = least;
  while (first != points.begin() && first->smoothed < fallen) --first;
  return {first, least + 1};
}

}  // namespace

double lr_at(const LrRangeRequest& request, std::int64_t step) {
  const double way = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, request.steps - 1));
  if (request.linear) return request.min_lr + (request.max_lr - request.min_lr) * way;
  return request.min_lr * std::pow(request.max_lr / request.min_lr, way);
}

bool LrRecorder::add(double lr, double loss) {
  if (!std::isfinite(loss)) {
    result_.diverged = true;
    return false;
  }
  mean_ = request_.smoothing * mean_ + (1.0 - request_.smoothing) * loss;
  kept_ *= request_.smoothing;
  const double smoothed = mean_ / (1.0 - kept_);
  result_.points.push_back({lr, loss, smoothed});
  if (result_.points.size() == 1 || smoothed < least_) least_ = smoothed;
  // For a negative loss every multiple lies below it, too.
  result_.diverged = smoothed > least_ + (request_.diverged_at - 1.0) * std::abs(least_);
  return !result_.diverged;
}

LrRangeTest LrRecorder::take() {
  result_.suggestion = suggest_lr(result_.points);
  return std::move(result_);
}

std::optional<LrSuggestion> suggest_lr(const std::vector<LrPoint>& all) {
  const std::size_t first = all.size() / 10;
  if (all.size() < first + kLastLeftOut + kPointsMin) return std::nullopt;
  const std::vector<LrPoint> points(all.begin() + static_cast<std::ptrdiff_t>(first),
                                    all.end() - static_cast<std::ptrdiff_t>(kLastLeftOut));
  const std::vector<LrPoint> descent = descent_of(points);
  if (descent.size() < kPointsMin) return std::nullopt;
  return LrSuggestion{valley(descent), steepest(descent)};
}

}  // namespace runner::train
