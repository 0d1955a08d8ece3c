#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace runner::train {

/// What `roux lr-find` asks for. Without LibTorch, like all of this header: the program fills it in.
struct LrRangeRequest {
  double min_lr = 1e-7, max_lr = 10.0;
  std::int64_t steps = 100;
  bool linear = false;       ///< linear spacing of the rates; else exponential
  double smoothing = 0.98;   ///< smoothing factor of the running mean of the losses
  double diverged_at = 4.0;  ///< times the smallest smoothed loss: the test ends there
};

/// The rate of step `step`, from 0 on.
double lr_at(const LrRangeRequest& request, std::int64_t step);

struct LrPoint {
  double lr = 0, loss = 0, smoothed = 0;
};

/// The suggested rates.
struct LrSuggestion {
  double valley = 0;    ///< middle of the longest descent
  double steepest = 0;  ///< steepest descent
};

/// The losses of a short training with a rate that increases every step.
struct LrRangeTest {
  std::vector<LrPoint> points;
  bool diverged = false;                   ///< ended before the last rate
  std::optional<LrSuggestion> suggestion;  ///< nothing if the loss never fell
};

/// Records the loss of one more step; false when the loss has diverged and the test is over.
///
/// Source  fastai's LRFinder: a running mean corrected for its start, stops at four times the smallest one
class LrRecorder {
 public:
  explicit LrRecorder(const LrRangeRequest& request) : request_(request) {}
  bool add(double lr, double loss);
  LrRangeTest take();

 private:
  LrRangeRequest request_;
  LrRangeTest result_;
  double mean_ = 0, kept_ = 1, least_ = 0;
};

/// Uses the points without the first tenth and the last five, which warm up or diverge: of the rest those from where
/// the loss starts to fall to its minimum.
///
/// Source  Smith, Cyclical Learning Rates, arXiv:1506.01186, section 3.3; fastai.callback.schedule, valley and steep
std::optional<LrSuggestion> suggest_lr(const std::vector<LrPoint>& points);

}  // namespace runner::train
