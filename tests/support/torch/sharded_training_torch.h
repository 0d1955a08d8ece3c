#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runner/train/experiment/experiment.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace tests {

struct Trained {
  std::vector<double> losses, norms, weights;     ///< of each step; of the whole model at the end
  std::vector<double> eval_weights;               ///< what is evaluated then
  std::vector<std::vector<double>> micro_losses;  ///< by rank
  /// What the optimizer keeps of each parameter after the first step (`exp_avg.h.0.ln_1.weight`), of the rows that the
  /// ranks would save.
  std::map<std::string, std::vector<double>> first_state;
  std::vector<std::vector<double>> rank_weights;  ///< the weights that each rank has at the end, by rank
  int shrunk = 0;                                 ///< how often rank 0 halved the micro-batch for want of memory
};

/// Runs its argument as each rank.
using RunRanks = std::function<void(const std::function<void(runner::distributed::ProcessGroup&)>& body)>;

/// Trains `recipe.yaml` of the current folder with these `--set`s on that many ranks, threads of this process, up to
/// `training.max_steps`, with the weights to evaluate put in and out after each step; with `training.auto_micro_batch`
/// a step that runs out of memory is made again with half the micro-batch. `prepare` changes each rank's experiment
/// before the first step; `run` runs the ranks, run_ranks() where there is none. Fails the test when it cannot be
/// built.
Trained train_on_ranks(std::vector<std::string> sets, int ranks,
                       const std::function<void(runner::train::Experiment&)>& prepare = {}, const RunRanks& run = {});

}  // namespace tests
