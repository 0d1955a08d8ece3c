#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/tensors.h"
#include "runner/train/accumulation.h"
#include "runner/train/experiment.h"
#include "runner/train/gradients.h"
#include "runner/train/loader.h"
#include "runner/train/progress.h"

namespace runner::train {

/// Over what the loss of a window is averaged; DESIGN.md section 4.
enum class WindowMean {
  kElements,      ///< what the loss counts: tokens of a language model, samples else
  kSamples,       ///< every sample weighs the same, however many targets it has
  kMicroBatches,  ///< Accelerate: each micro-batch's mean, divided by the number of accumulation steps
};

struct StepperOptions {
  std::int64_t accumulation_steps = 1;
  bool sync_with_dataloader = true;
  WindowMean mean = WindowMean::kElements;
  ScheduleClock::Options schedule;
  Loader::Options loader;
  ClipOptions clip;
  bool bf16 = false;
};

/// The options a settled recipe asks for.
StepperOptions stepper_options(const core::Node& recipe);

struct StepResult {
  double loss = 0;                  ///< mean over the window
  std::optional<double> grad_norm;  ///< before clipping; only when clipping or asked for
  double lr = 0;                    ///< that this step used
  std::int64_t samples = 0, tokens = 0, micro_batches = 0;
  double data_seconds = 0;           ///< spent waiting for samples
  std::vector<double> micro_losses;  ///< mean of each micro-batch
};

/// The arithmetic of training: fetch, forward, backward, (accumulate), clip, step, schedule. Knows no files and no
/// metrics.
class Stepper {
 public:
  Stepper(Experiment& experiment, const StepperOptions& options);

  /// One optimizer step. `want_grad_norm` costs a pass over the gradients when nothing is clipped.
  StepResult step(bool want_grad_norm);

  /// What is not finite after a step whose loss or norm was not: runs the window's last batch forward once more with a
  /// look at each block. "output of block h.3", "gradient of h.0.attn_qkv.weight", "input of the batch", ...
  std::string first_bad_tensor();

  const Progress& progress() const { return progress_; }
  Progress& progress() { return progress_; }
  const Loader& loader() const { return loader_; }
  const std::vector<components::NamedTensor>& parameters() const { return parameters_; }
  const ScheduleClock& schedule() const { return schedule_; }

  /// Counters, data position and schedule, for a checkpoint.
  core::Node state() const;
  void restore(const core::Node& state);

 private:
  struct MicroBatch {
    components::TensorMap tensors;
    std::int64_t samples = 0;
    std::int64_t count = 0;  ///< elements of the loss's mean
    bool epoch_ended = false;
  };

  void fetch_window();
  double weight_of(const MicroBatch& micro) const;
  double forward_backward(MicroBatch& micro, double weight);
  void count_progress(const StepResult& result);

  Experiment& experiment_;
  StepperOptions options_;
  Loader loader_;
  Accumulation accumulation_;
  ScheduleClock schedule_;
  Progress progress_;
  std::vector<components::NamedTensor> parameters_;
  std::vector<MicroBatch> window_;
  std::size_t window_size_ = 0;
  std::int64_t window_count_ = 0, window_samples_ = 0;
  at::Tensor weight_;
  double weight_value_;
};

}  // namespace runner::train
