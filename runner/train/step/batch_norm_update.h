#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "components/tensor/autocast.h"
#include "runner/train/data/loader.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {

struct BatchNormUpdateOptions {
  Loader::Options loader;       ///< the training's
  std::int64_t batch_size = 1;  ///< samples of a forward pass; where memory runs out, the loader's micro-batches
  std::optional<std::int64_t> max_batches;
  components::AutocastOptions autocast;
  std::function<bool()> interrupted;             ///< asked before each batch; true ends the update
  std::function<void(const std::string&)> tell;  ///< gets a line when memory ran out
};

/// Measures the running statistics of the averaged weights (torch.optim.swa_utils.update_bn) if `weight_averaging` asks
/// for it: each becomes its mean over the batches of epoch 0 of the training. The trained ones and all random numbers
/// stay unchanged. On all ranks, of which each makes all passes. False when interrupted; the average is then unchanged.
///
/// Source  torch.optim.swa_utils.update_bn
bool update_batch_norm(const Experiment& experiment, const BatchNormUpdateOptions& options);

}  // namespace runner::train
