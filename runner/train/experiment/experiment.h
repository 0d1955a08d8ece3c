#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/adapter/adapter.h"
#include "components/callback/callback.h"
#include "components/data/data.h"
#include "components/loss/loss.h"
#include "components/lr_scheduler/lr_scheduler.h"
#include "components/metric/metric.h"
#include "components/model/model.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/upload.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/core/diagnostics.h"
#include "runner/core/platform/device_graph.h"
#include "runner/resolve/recipe.h"
#include "runner/train/experiment/progress.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::checkpoint {
class BaseWeights;
}

namespace runner::train {

class Bf16MasterWeights;
class GradientStrategy;
class StepReference;
class TravellingWeights;
class WeightAverage;
struct BlockPlaces;
struct Experiment;

/// Of an experiment with recipe, model and ranks, but without an optimizer; see strategy/make_strategy.h.
using MakeStrategy = std::function<std::shared_ptr<GradientStrategy>(const Experiment&)>;

/// Of a process that keeps its rows of each parameter alone from the start.
struct KeptRows {
  std::function<at::Tensor(const at::Tensor& whole)> rows;  ///< in the memory of the whole
  int processes = 1;                                        ///< that share a parameter
};

struct BuildOptions {
  bool meta = false;                     ///< `plan`: nothing is allocated, data are read by their headers
  bool for_training = true;              ///< also build optimizer, schedule and callbacks
  bool of_ids = false;                   ///< no data set is built: the model reads ids of any text
  bool weights_follow = false;           ///< the caller reads all parameters from a file at once: none is drawn
  MakeStrategy make_strategy = nullptr;  ///< `for_training` needs it
  /// Is given the model on the meta device, before its weights are made, and Experiment::replicated. False, with an
  /// error, ends the build.
  std::function<bool(const components::model::Model& on_meta, const std::set<std::string>& replicated)> check_model =
      nullptr;
  /// Then asked for the names of weights that are made in bfloat16, whatever the precision says; no function: none.
  std::function<std::set<std::string>(const components::model::Model& on_meta)> in_bf16 = nullptr;
  std::optional<KeptRows> kept_rows = {};                      ///< nothing: parameters are whole
  int local_rank = 0;                                          ///< this process's among those of its machine
  std::shared_ptr<distributed::ProcessGroup> ranks = nullptr;  ///< null: this process trains alone
  /// Data sets to build beside `train` (whose vocabulary and statistics the others use); empty: all.
  std::vector<std::string> data_sets = {};
  /// A file of rows to predict, read as the training set is, but all of it; it becomes the set kNewRows. "": none.
  std::string new_rows = {};
  const Experiment* data_of = nullptr;  ///< whose data sets are taken in place of those of the recipe
  std::vector<std::string> keep = {};   ///< columns that the sets in `data_sets`, or the new rows, keep as text
};

inline constexpr const char* kNewRows = "input";  ///< a set's name in messages

struct NamedDataset {
  std::string name;
  std::shared_ptr<components::data::Dataset> data;
};

struct BuiltCallback {
  std::string type;         ///< name in the recipe; the key of its state
  core::Location location;  ///< of its block
  std::shared_ptr<components::callback::Callback> callback;
};

/// The components of a recipe, built and connected.
struct Experiment {
  resolve::Recipe recipe;  ///< fully settled, including `total_steps`
  /// Of the model, its gradients and the optimizer; CPU with `meta`. Of a model that `placement` divides the one that
  /// batches come to, and outputs.
  c10::Device device = c10::Device(c10::kCPU);
  components::Uploader upload;  ///< of micro-batches to `device`
  std::shared_ptr<components::data::Dataset> train_data;
  std::vector<std::string> class_names;  ///< that the model's head tells; empty where they are numbers
  std::vector<NamedDataset> eval_data;   ///< every other named set, in the recipe's order
  std::shared_ptr<components::model::Model> model;
  std::vector<std::shared_ptr<components::adapter::Adapter>> adapters;  ///< of the model, by `adapters`
  std::shared_ptr<const BlockPlaces> places;     ///< of the model's blocks; null without `placement`
  std::shared_ptr<TravellingWeights> placement;  ///< the same of a model that is not on the meta device
  /// Of what is trained by several processes that shard it: the parameters that each of them holds whole,
  /// `parallelism.replicate`.
  std::set<std::string> replicated;
  /// With `kept_rows`, until the strategy has them: by parameter what it begins as, having no memory itself.
  std::shared_ptr<const std::vector<components::NamedTensor>> rows;
  std::shared_ptr<const checkpoint::BaseWeights> base;  ///< what checkpoints name and do not hold; null: nothing
  std::shared_ptr<components::loss::Loss> loss;
  std::shared_ptr<components::optimizer::Optimizer> optimizer;
  std::shared_ptr<Bf16MasterWeights>
      master_weights;                             ///< between model and optimizer; null when all weights are float32
  std::shared_ptr<WeightAverage> weight_average;  ///< null where nothing is trained
  std::shared_ptr<components::lr_scheduler::Scheduler> scheduler;
  std::vector<std::shared_ptr<components::metric::Metric>> metrics;
  std::vector<BuiltCallback> callbacks;
  std::vector<std::string> metric_names;
  Limits limits;
  EpochShape shape;
  std::int64_t total_steps = 0;                      ///< 0 when only max_time limits the training
  std::shared_ptr<distributed::ProcessGroup> ranks;  ///< null: this process trains alone
  int local_rank = 0;                                ///< rank on this host
  core::NewDeviceGraph new_graph = {};               ///< of `device`; null: it has none, or the process trains nothing
  bool steps_in_backward = false;                    ///< the optimizer's own word, known before it is made
  std::shared_ptr<GradientStrategy> strategy;        ///< null where nothing is trained
  /// Of what refers_by_step() or compares_outputs(), see prepare_reference(); elsewhere null.
  std::shared_ptr<const StepReference> step_reference;

  int rank() const;
  int world_size() const;                        ///< 1 where this process trains alone
  bool is_first() const { return rank() == 0; }  ///< rank 0, which writes, prints and decides
  const components::data::Dataset* find_data(const std::string& name) const;
};

/// Builds in order: data, model (on the meta device first, to check shapes before memory is allocated), loss, metrics,
/// then what training needs. Seeds LibTorch with the recipe's `seed` right before initializing the weights, which are
/// drawn on the CPU and copied: a seed means the same start on every device. Null when `diagnostics` got errors; as
/// many as possible are reported at once.
std::unique_ptr<Experiment> build_experiment(const resolve::Recipe& recipe, const BuildOptions& options,
                                             core::Diagnostics& diagnostics);

/// Whether the figures of a reference are computed step by step: the loss compares with one, and the training set is a
/// stream, whose pairs are not known before the first step.
bool refers_by_step(const Experiment& experiment);

/// Whether the loss compares each output with that of `teacher`, which is asked in each pass.
bool compares_outputs(const Experiment& experiment);

/// Gives the experiment its strategy, and the strategy the model. Before the optimizer is made, which takes its tensors
/// from it; a later strategy must have the same ones.
void set_strategy(Experiment& experiment, std::shared_ptr<GradientStrategy> strategy);

/// How a file fills the model's parameters, whatever the strategy holds of them, and wherever they are.
checkpoint::WeightAccess weight_access(const Experiment& experiment);

/// Floating-point operations of the forward pass for one sample of `data`, the mean where lengths differ and without
/// padding: matrix products and convolutions only.
double forward_flops(const Experiment& experiment, const components::data::Dataset& data);
/// The same of a forward and a backward pass for one sample of the training set.
double training_flops(const Experiment& experiment);

}  // namespace runner::train
