#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/callback/callback.h"
#include "components/data/data.h"
#include "components/loss/loss.h"
#include "components/lr_scheduler/lr_scheduler.h"
#include "components/metric/metric.h"
#include "components/model/model.h"
#include "components/optimizer/optimizer.h"
#include "runner/core/diagnostics.h"
#include "runner/resolve/load.h"
#include "runner/train/experiment/progress.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

class Bf16MasterWeights;
class GradientStrategy;
struct StrategyInputs;
class WeightAverage;

struct BuildOptions {
  bool meta = false;         ///< `plan`: nothing allocated, data by their headers
  bool for_training = true;  ///< optimizer, schedule and callbacks too
  /// Data sets to build beside `train` (whose vocabulary and statistics the others use); empty: all.
  std::vector<std::string> data_sets;
};

struct NamedDataset {
  std::string name;
  std::shared_ptr<components::data::Dataset> data;
};

struct BuiltCallback {
  std::string type;      ///< as the recipe names it; the key of its state
  core::Location place;  ///< of its block
  std::shared_ptr<components::callback::Callback> callback;
};

/// The components of a recipe, built and fitted to each other.
struct Experiment {
  resolve::Recipe recipe;  ///< settled whole: `total_steps` too
  std::shared_ptr<components::data::Dataset> train_data;
  std::vector<NamedDataset> eval_data;  ///< every other named set, in the recipe's order
  std::shared_ptr<components::model::Model> model;
  std::shared_ptr<components::loss::Loss> loss;
  std::shared_ptr<components::optimizer::Optimizer> optimizer;
  std::shared_ptr<Bf16MasterWeights>
      rounded_weights;                            ///< between model and optimizer; null when all weights are float32
  std::shared_ptr<WeightAverage> weight_average;  ///< null where nothing is trained
  std::shared_ptr<components::lr_scheduler::Scheduler> scheduler;
  std::vector<std::shared_ptr<components::metric::Metric>> metrics;
  std::vector<BuiltCallback> callbacks;
  std::vector<std::string> metric_names;
  Limits limits;
  EpochShape shape;
  std::int64_t total_steps = 0;                      ///< 0 when only the time limits the training
  std::shared_ptr<distributed::ProcessGroup> ranks;  ///< that train it together; null: this process alone
  int local_rank = 0;                                ///< among those of this host
  /// In place of the strategy that the recipe asks for; see strategy/make_strategy.h.
  std::function<std::unique_ptr<GradientStrategy>(const StrategyInputs&)> make_strategy;

  int rank() const;
  int world_size() const;                        ///< 1 where this process trains alone
  bool is_first() const { return rank() == 0; }  ///< the one process that writes, prints and decides
  const components::data::Dataset* find_data(const std::string& name) const;
};

/// Builds in order: data, model (on the meta device first, so that shapes are judged before memory is touched), loss,
/// metrics, then what training needs. Seeds LibTorch with the recipe's `seed` right before the weights are drawn. Null
/// when `diagnostics` got errors; as many as can be seen at once are reported.
std::unique_ptr<Experiment> build_experiment(const resolve::Recipe& recipe, const BuildOptions& options,
                                             core::Diagnostics& diagnostics);

}  // namespace runner::train
