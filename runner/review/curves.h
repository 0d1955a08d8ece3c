#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/chart/curve.h"
#include "runner/review/runs.h"

namespace runner::review {

/// The x axis. All but steps and time are steps times a factor from the run's summary.
enum class XAxis { kStep, kTime, kEpoch, kTokens, kSamples };

struct CurvesRequest {
  std::vector<std::string> metrics = {};  ///< names; `*` matches any text
  XAxis x = XAxis::kStep;
  double smoothing = 0;  ///< 0 to 1: weight of earlier values in a moving average
};

struct Curves {
  std::vector<chart::Curve> curves;
  std::string x_title;
};

/// A curve for each metric of each run. Skips runs that lack a metric, with a notice; nothing when no run has it.
std::optional<Curves> load_curves(const std::vector<store::RunSummary>& runs, const CurvesRequest& request,
                                  core::Diagnostics& diagnostics);

/// A debiased exponential moving average, as in TensorBoard. Values that are not finite stay and do not count.
void smooth(std::vector<std::pair<double, double>>& points, double weight);

}  // namespace runner::review
