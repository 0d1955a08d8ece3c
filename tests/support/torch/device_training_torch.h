#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/callback/callback.h"
#include "runner/core/node.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "tests/support/temp_dir.h"

// Trainings on a device that a test names: the CPU or the pretended accelerator, which the first call registers.

namespace tests::device_training {

inline constexpr const char* kFirst = "pretend:0";
inline constexpr const char* kSecond = "pretend:1";
inline constexpr const char* kCpu = "cpu";

struct Trained {
  std::unique_ptr<runner::train::Experiment> experiment;
  std::vector<std::pair<std::string, double>> metrics;  ///< after each step, and after each evaluation
  std::string checkpoint;
};

/// Fails the test when the recipe is refused.
Trained build_on(const std::string& device, const std::string& path, const std::vector<std::string>& sets,
                 int local_rank = 0);
Trained train_on(const std::string& device, const std::string& path, std::vector<std::string> sets,
                 const TempDir& folder, const std::string& from = "");

/// Two ranks, with a device each unless it is the CPU; `pretend` names both devices. Of the first one, without its
/// experiment. Fails the test unless both end with the same weights.
Trained train_two_on(const std::string& device, const std::string& path, std::vector<std::string> sets,
                     const TempDir& folder, const std::string& from = "");

/// A training that nothing but the loop looks at.
struct Unwatched {
  std::unique_ptr<runner::train::Experiment> experiment;
  std::unique_ptr<runner::store::RunWriter> run;
  runner::core::Node summary;
  std::string error;  ///< "" unless it failed
};

Unwatched train_unwatched(const std::string& device, const std::string& path, const std::vector<std::string>& sets,
                          const TempDir& folder);

/// What `roux plan` says of the tensors, by another process: a plan and the pretended accelerator extend LibTorch at
/// the same place.
double planned_bytes(const std::string& path, const std::vector<std::string>& sets);

/// Both have the same metrics at the same steps, within this relative distance; an accuracy may differ by one sample of
/// the few.
void check_close(const Trained& one, const Trained& other, double tolerance);

/// Takes down every metric after each step, and after each evaluation.
class Watcher final : public ::components::callback::Callback {
 public:
  void on_step_end(::components::callback::Context& context) override { note(context, "loss"); }
  void on_eval_end(::components::callback::Context& context) override {
    for (const char* name : {"val/loss", "val/accuracy", "val/perplexity"}) note(context, name);
  }
  std::vector<std::pair<std::string, double>> seen;

 private:
  void note(::components::callback::Context& context, const char* name) {
    if (const double* value = context.metric(name)) seen.emplace_back(name, *value);
  }
};

inline const std::vector<std::string> kTwentySteps = {"training.max_steps=20", "training.max_epochs=null"};

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more);

/// A small recipe with dropout, averaged weights and asynchronous saves.
inline constexpr const char* kSpirals = R"(
run_name: spirals
model: {type: mlp, hidden: [8], activation: tanh, dropout: 0.1}
data:
  train: {type: synthetic, task: spirals, num_samples: 60, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
weight_averaging: {type: ema, decay: 0.9}
training: {max_steps: 12, micro_batch_size: 8, clip_grad_norm: 1.0}
checkpoint: {save_steps: 6, async_save: true}
)";

}  // namespace tests::device_training
