#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/throttle.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace runner::checkpoint {

class BaseWeights;
class CheckpointPrefetch;

/// What one of several processes saves; the first one also saves all that is not shared.
struct SaveShare {
  int process = 0;
  std::vector<components::TensorRows> rows = {};  ///< of the model's tensors
};

/// Everything that decides the next step, by reference. `stateful` names go into trainer.json as sections
/// ("lr_scheduler", "callbacks.0", ...); the optimizer's tensors go into optimizer.safetensors, those of the others
/// into
/// `<name>.safetensors`.
struct TrainState {
  const components::model::Model* model = nullptr;
  std::vector<std::pair<std::string, core::Stateful*>> stateful;  ///< "optimizer" first
  core::Node counters;                                            ///< steps, epochs, samples, tokens, seconds
  int rank = 0;  ///< the rank with the random state that load() restores
  /// The generator states of all ranks (components::RandomState::bytes), for save(); empty: a single rank.
  std::vector<std::string> random_states = {};
  c10::Device device = c10::Device(c10::kCPU);  ///< that training draws random numbers on
  /// What the model has from elsewhere and a checkpoint names only; null: it holds all. load() sets it.
  std::shared_ptr<const BaseWeights> base = nullptr;
  std::string base_elsewhere = {};      ///< where load() looks for it first, as `init_from` names it; may be ""
  std::optional<SaveShare> share = {};  ///< for save(): nothing where this process saves alone
  /// The parameters of which load() fills rows instead of the model's; their processes share the others.
  std::vector<components::TensorRows> loaded_rows = {};
  WeightAccess access = {};  ///< for what load() fills of a base, and what stays in files
};

struct SaveOptions {
  std::string checkpoints_dir;
  artifact::ManifestFields fields;  ///< step, branch, run_id, recipe_hash, data_position, metrics
  std::function<std::int64_t()> metrics_committed;
  std::int64_t now_ms = 0;
  /// A model larger than this goes into several files, none of them larger unless one tensor is.
  std::int64_t shard_bytes_max = std::numeric_limits<std::int64_t>::max();
  bool direct_io = false;                                      ///< bypass the page cache if the file system can
  std::shared_ptr<const artifact::JointSave> joint = nullptr;  ///< with a share of the state
  /// Throttles write() and commit() in the background; null: full speed.
  std::shared_ptr<artifact::Throttle> throttle = nullptr;
};

/// Writes step-NNNNNN with model.safetensors (or shards), optimizer.safetensors, trainer.json and
/// random_states_<rank>.safetensors (LibTorch's default generators: components::RandomState). Returns the folder.
/// RunError on disk errors; the last checkpoint stays intact.
std::string save(const TrainState& state, const SaveOptions& options);

/// What is saved beside a trained parameter: the optimizer's state of it, and an average.
struct SavedState {
  std::int64_t bytes = 0;
  int tensors = 0;
};
using SavedBeside = std::function<SavedState(const at::Tensor& parameter)>;

/// What save() will write, in bytes, for `plan` and the free-space check. `base` as in TrainState.
std::int64_t estimate_bytes(const components::model::Model& model, const SavedBeside& beside,
                            const BaseWeights* base = nullptr);

/// Fills model, stateful parts and generator from a verified folder; returns the counters. RunError names the tensor
/// that does not fit. A generator that the checkpoint lacks, of a rank or of another device, keeps its state, and the
/// log says so. `prefetched`: files in memory from verification; null reads the files again.
core::Node load(const std::string& path, TrainState& state, CheckpointPrefetch* prefetched = nullptr);

/// What load() returns, without filling anything.
core::Node load_counters(const std::string& path);

/// Weights only, with strict names and shapes. `path`: a checkpoint, as for `eval` and `predict`; or a folder with
/// model.safetensors or its shards, an index, or a safetensors file. Of a checkpoint of adapters the base, too, from
/// where it was or from `base_elsewhere`.
void load_weights(const std::string& path, const components::model::Model& model,
                  const std::string& base_elsewhere = "", const WeightAccess& access = {});

}  // namespace runner::checkpoint
