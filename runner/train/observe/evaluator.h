#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/autocast.h"
#include "runner/train/experiment/experiment.h"

namespace components {
class TensorMap;
}

namespace runner::train {

struct EvalOptions {
  std::int64_t micro_batch_size = 1;        ///< samples of a pass of one process, which change no result
  std::optional<std::int64_t> max_samples;  ///< from the start of the set; nothing: all
  components::AutocastOptions autocast;
  int num_workers = 0;  ///< Loader::Options
  std::int64_t prefetch_factor = 2;
  bool with_hidden = false;           ///< leave kHidden beside the outputs, where the model has it
  bool loss_alone = false;            ///< in evaluate(): no outputs that nothing but the loss would read
  bool rank_0_reads = false;          ///< the batches of all ranks, and sends them
  std::function<bool()> interrupted;  ///< asked before each batch; true ends the evaluation
  std::function<void()> begin_batch;  ///< called before each batch of this process
  /// In predict(): called for each batch of another rank, with this rank and the batch's size, in the order of the set.
  std::function<void(int rank, std::int64_t count)> other_batch;
};

struct EvalResult {
  std::string data_set;
  std::int64_t samples = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> values;  ///< `loss` first, then the metrics

  double loss() const { return values.front().second; }
};

/// Mean loss and metrics over one data set, in its own order, without gradients and without touching any RNG. Restores
/// the model's mode. Nothing when interrupted. With several processes each takes its share of the batches, and all get
/// the same result.
std::optional<EvalResult> evaluate(const Experiment& experiment, const std::string& name,
                                   const components::data::Dataset& data, const EvalOptions& options);

/// The same pass over the batches of this process for `predict`: `consume(first sample, batch with outputs)`, in the
/// order of the set. False when interrupted.
bool predict(const Experiment& experiment, const components::data::Dataset& data, const EvalOptions& options,
             const std::function<void(std::int64_t, const components::TensorMap&)>& consume);

}  // namespace runner::train
