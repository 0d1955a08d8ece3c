#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/loop.h"
#include "runner/train/strategy/make_strategy.h"

namespace tests {

struct Built {
  std::unique_ptr<runner::train::Experiment> experiment;  ///< null when the recipe was refused
  std::string messages;
};

/// `recipe.yaml` of the current folder with these `--set`s, built for training.
Built build_recipe_file(const std::vector<std::string>& sets = {}, const runner::train::BuildOptions& how = {});
/// The same; fails the test when it cannot be built.
std::unique_ptr<runner::train::Experiment> experiment_of_recipe(const std::vector<std::string>& sets = {});

/// A new run in that folder, under the name of its recipe.
std::unique_ptr<runner::store::RunWriter> new_run(const std::string& output_dir);

/// Trains to the end, from a checkpoint unless it is "".
runner::train::LoopResult train_quietly(runner::train::Experiment& experiment, runner::store::RunWriter& run,
                                        const std::string& checkpoint = "");

/// The same on several ranks, each a thread of this process that trains one of the experiments on its device.
void train_ranks(const std::vector<std::unique_ptr<runner::train::Experiment>>& experiments,
                 runner::store::RunWriter& run, const std::string& checkpoint = "",
                 const runner::train::MakeStrategy& make = runner::train::make_strategy);

/// Of a rank; null ends it.
using BuildRank = std::function<std::unique_ptr<runner::train::Experiment>(
    const std::shared_ptr<runner::distributed::ProcessGroup>&)>;

/// Ranks that build their own experiments, as processes do; `seen` gets each with what its training came to, before its
/// group is gone.
void train_ranks(int ranks, runner::store::RunWriter& run, const std::string& checkpoint, const BuildRank& build,
                 const std::function<void(runner::train::Experiment&, const runner::train::LoopResult&)>& seen);

/// Makes the experiment one of a rank, with a strategy for that; leave() undoes it before the group is gone.
void join(runner::train::Experiment& experiment, runner::distributed::ProcessGroup& group,
          const runner::train::MakeStrategy& make = runner::train::make_strategy);
void leave(runner::train::Experiment& experiment);

/// Whether the parameters of both are the same to the last bit.
bool same_bits(const runner::train::Experiment& a, const runner::train::Experiment& b);

}  // namespace tests
