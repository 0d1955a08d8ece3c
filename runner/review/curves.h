#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/chart/curve.h"
#include "runner/review/runs.h"

namespace runner::review {

/// What a curve is drawn over. All but steps and time are steps times what the run's summary says of a step.
enum class XAxis { kStep, kTime, kEpoch, kTokens, kSamples };

struct CurvesRequest {
  std::vector<std::string> metrics = {};  ///< names, in which `*` stands for any text
  XAxis x = XAxis::kStep;
  double smoothing = 0;  ///< 0 to 1: the share of what was before in a moving average
};

struct Curves {
  std::vector<chart::Curve> curves;
  std::string x_title;
};

/// A curve for each metric of each run. A run that lacks a metric which others have is left out with a word; nothing
/// when `diagnostics` says that none has it.
std::optional<Curves> load_curves(const std::vector<store::RunSummary>& runs, const CurvesRequest& request,
                                  core::Diagnostics& diagnostics);

/// An exponential moving average that gives the first values as little weight as they had, as TensorBoard has it
/// (debiased). What is not finite stays, and does not count.
void smooth(std::vector<std::pair<double, double>>& points, double weight);

}  // namespace runner::review
