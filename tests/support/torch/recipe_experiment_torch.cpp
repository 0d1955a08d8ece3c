#include "tests/support/torch/recipe_experiment_torch.h"

#include <signal.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "runner/resolve/load.h"
#include "runner/store/null_run_writer.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "tests/support/torch/ranks_torch.h"

namespace tests {

using namespace runner;

namespace {

/// Loops on threads of one process each put the signal handlers back that the other one had set.
class Handlers {
 public:
  Handlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~Handlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, 3> before_;
};

}  // namespace

Built build_recipe_file(const std::vector<std::string>& sets, const train::BuildOptions& how) {
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({recipe::Override::Kind::kSet, set});
  const auto recipe = resolve::load_recipe("recipe.yaml", options, registry::Registry::builtin(), diagnostics);
  Built built;
  train::BuildOptions build = how;
  if (!build.make_strategy) build.make_strategy = train::make_strategy;
  if (recipe) built.experiment = train::build_experiment(*recipe, build, diagnostics);
  built.messages = core::render(diagnostics, {});
  return built;
}

std::unique_ptr<train::Experiment> experiment_of_recipe(const std::vector<std::string>& sets) {
  Built built = build_recipe_file(sets);
  INFO(built.messages);
  REQUIRE(built.experiment != nullptr);
  return std::move(built.experiment);
}

std::unique_ptr<store::RunWriter> new_run(const std::string& output_dir) {
  store::NewRun fresh;
  fresh.output_dir = output_dir;
  fresh.run_name = "run";
  fresh.resolved_json = "{}";
  return store::RunWriter::create(fresh, core::system_clock()).value();
}

train::LoopResult train_quietly(train::Experiment& experiment, store::RunWriter& run, const std::string& checkpoint) {
  train::LoopRequest request;
  request.quiet = true;
  request.checkpoint = checkpoint;
  train::LoopResult result = train::run_loop(experiment, run, request, core::system_clock());
  run.finish(store::RunStatus::kFinished, "");
  return result;
}

void join(train::Experiment& experiment, distributed::ProcessGroup& group, const train::MakeStrategy& make) {
  experiment.ranks = {std::shared_ptr<distributed::ProcessGroup>(), &group};
  train::set_strategy(experiment, make(experiment));
}

void leave(train::Experiment& experiment) {
  experiment.ranks.reset();
  train::set_strategy(experiment, train::make_strategy(experiment));
}

void train_ranks(const std::vector<std::unique_ptr<train::Experiment>>& experiments, store::RunWriter& run,
                 const std::string& checkpoint, const train::MakeStrategy& make) {
  const Handlers handlers;
  run_ranks({.size = static_cast<int>(experiments.size())}, [&](distributed::ProcessGroup& group) {
    train::Experiment& experiment = *experiments[static_cast<std::size_t>(group.rank())];
    components::use_device(experiment.device);
    join(experiment, group, make);
    train::LoopRequest request;
    request.quiet = true;
    request.checkpoint = checkpoint;
    const auto follower = store::null_run_writer(run.run_dir(), run.run_id(), run.branch());
    train::run_loop(experiment, group.rank() == 0 ? run : *follower, request, core::system_clock());
    leave(experiment);
  });
  run.finish(store::RunStatus::kFinished, "");
}

void train_ranks(int ranks, store::RunWriter& run, const std::string& checkpoint, const BuildRank& build,
                 const std::function<void(train::Experiment&, const train::LoopResult&)>& seen) {
  const Handlers handlers;
  run_ranks({.size = ranks}, [&](distributed::ProcessGroup& group) {
    const auto experiment = build(std::shared_ptr<distributed::ProcessGroup>(std::shared_ptr<void>(), &group));
    if (experiment == nullptr) return;
    components::use_device(experiment->device);
    train::LoopRequest request;
    request.quiet = true;
    request.checkpoint = checkpoint;
    const auto follower = store::null_run_writer(run.run_dir(), run.run_id(), run.branch());
    const train::LoopResult result =
        train::run_loop(*experiment, group.rank() == 0 ? run : *follower, request, core::system_clock());
    seen(*experiment, result);
  });
  run.finish(store::RunStatus::kFinished, "");
}

bool same_bits(const train::Experiment& a, const train::Experiment& b) {
  const auto left = a.model->parameters(), right = b.model->parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    const at::Tensor one = left[i].tensor.cpu(), other = right[i].tensor.cpu();
    if (one.nbytes() != other.nbytes()) return false;
    if (std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) != 0) return false;
  }
  return left.size() == right.size();
}

}  // namespace tests
