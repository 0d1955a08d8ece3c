#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/train/experiment/experiment.h"

namespace tests {

struct Trained {
  std::vector<double> losses, norms, weights;     ///< of each step; of the whole model at the end
  std::vector<double> eval_weights;               ///< what is evaluated then
  std::vector<std::vector<double>> micro_losses;  ///< by rank
};

/// Trains `recipe.yaml` of the current folder with these `--set`s on that many ranks, threads of this process, up to
/// `training.max_steps`, with the weights to evaluate put in and out after each step. `prepare` changes each rank's
/// experiment before the first step. Fails the test when it cannot be built.
Trained train_on_ranks(std::vector<std::string> sets, int ranks,
                       const std::function<void(runner::train::Experiment&)>& prepare = {});

}  // namespace tests
