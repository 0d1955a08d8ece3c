#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace runner::train {

/// What `roux lr-find` asks for. Free of LibTorch, as all of this header: the program fills it in.
struct LrRangeRequest {
  double min_lr = 1e-7, max_lr = 10.0;
  std::int64_t steps = 100;
  bool linear = false;       ///< equal distances between the rates; else equal ratios
  double smoothing = 0.98;   ///< what the running mean of the losses keeps of itself
  double diverged_at = 4.0;  ///< times the least smoothed loss: there the sweep ends
};

/// The rate of step `step`, from 0 on.
double lr_at(const LrRangeRequest& request, std::int64_t step);

struct LrPoint {
  double lr = 0, loss = 0, smoothed = 0;
};

/// Which rates to take.
struct LrSuggestion {
  double valley = 0;    ///< in the middle of the longest descent
  double steepest = 0;  ///< where the loss falls fastest
};

/// The losses of a short training whose rate climbs with every step.
struct LrSweep {
  std::vector<LrPoint> points;
  bool diverged = false;                   ///< ended before the last rate
  std::optional<LrSuggestion> suggestion;  ///< nothing where the loss never fell
};

/// Puts down the loss of one more step; false when the sweep has diverged and is over.
///
/// Source  fastai's LRFinder: a running mean corrected for its start, over at four times the least one
class LrRecorder {
 public:
  explicit LrRecorder(const LrRangeRequest& request) : request_(request) {}
  bool add(double lr, double loss);
  LrSweep take();

 private:
  LrRangeRequest request_;
  LrSweep sweep_;
  double mean_ = 0, kept_ = 1, least_ = 0;
};

/// Goes by the points that neither warm up nor diverge, without the first tenth and the last five: of them by those
/// from where the loss begins to fall to where it is least.
///
/// Source  Smith, Cyclical Learning Rates, arXiv:1506.01186, section 3.3; fastai.callback.schedule, valley and steep
std::optional<LrSuggestion> suggest_lr(const std::vector<LrPoint>& points);

}  // namespace runner::train
