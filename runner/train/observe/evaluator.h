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
  std::int64_t micro_batch_size = 1;
  std::optional<std::int64_t> max_batches;
  components::AutocastOptions autocast;
  int num_workers = 0;  ///< Loader::Options
  std::int64_t prefetch_factor = 2;
  bool rank_0_reads = false;          ///< the batches of all ranks, and sends them
  std::function<bool()> interrupted;  ///< asked before each batch; true ends the walk
};

struct EvalResult {
  std::string data_set;
  std::int64_t samples = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> values;  ///< `loss` first, then the metrics

  double loss() const { return values.front().second; }
};

/// Mean loss and metrics over one data set, in its own order, without gradients and without touching any RNG. The model
/// is left in training mode when it was. Nothing when it was interrupted. Where several processes train, each takes its
/// share of the batches, and all of them get the same result.
std::optional<EvalResult> evaluate(const Experiment& experiment, const std::string& name,
                                   const components::data::Dataset& data, const EvalOptions& options);

/// The same walk over the batches of this process for `predict`: `consume(first sample, batch with kOutput)`. False
/// when it was interrupted.
bool predict(const Experiment& experiment, const components::data::Dataset& data, const EvalOptions& options,
             const std::function<void(std::int64_t, const components::TensorMap&)>& consume);

}  // namespace runner::train
