#include "runner/train/step/batch_norm_update.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <string>

#include "components/tensor/device.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/weight_average.h"

namespace runner::train {
namespace {

/// While this lives, forward passes do not affect the training: neither random numbers (dropout) nor the weight of a
/// batch.
class Measuring {
 public:
  explicit Measuring(const Experiment& experiment)
      : experiment_(experiment), random_(components::RandomState::now(experiment.device)), weights_(experiment) {}
  ~Measuring() {
    experiment_.model->set_running_stats_momentum({});
    random_.restore();
  }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

 private:
  const Experiment& experiment_;
  components::RandomState random_;
  EvalWeights weights_;
};

bool measure(const Experiment& experiment, const BatchNormUpdateOptions& options) {
  const at::NoGradGuard no_grad;
  const Measuring measuring(experiment);
  components::TensorMap batch;
  Loader loader(*experiment.train_data, options.loader);
  const std::int64_t in_epoch = loader.batches_per_epoch();
  const std::int64_t batches = std::min(in_epoch, options.max_batches.value_or(in_epoch));
  for (std::int64_t i = 0; i < batches; ++i) {
    if (options.interrupted && options.interrupted()) return false;
    experiment.model->set_running_stats_momentum(1.0 / static_cast<double>(i + 1));
    loader.next(loader.batch_at(loader.position().sample), batch);
    components::TensorMap activations = experiment.upload(batch);
    const components::Autocast autocast(options.autocast);
    experiment.model->forward(activations);
  }
  experiment.weight_average->copy_running_stats(experiment.model->buffers());
  return true;
}

}  // namespace

bool update_batch_norm(const Experiment& experiment, const BatchNormUpdateOptions& options) {
  BatchNormUpdateOptions with = options;
  // A smaller set is one batch, which drop_last would leave nothing of.
  with.loader.micro_batch_size = std::min(options.batch_size, std::max<std::int64_t>(1, experiment.train_data->size()));
  bool complete = false;
  const std::exception_ptr failed = out_of_memory_in([&] { complete = measure(experiment, with); });
  try {
    if (experiment.ranks != nullptr) share_out_of_memory(*experiment.ranks, failed);
    if (failed != nullptr) std::rethrow_exception(failed);
    return complete;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error) || options.batch_size <= options.loader.micro_batch_size) throw;
    if (options.tell) {
      options.tell("the running statistics of the average are of batches of " +
                   std::to_string(options.loader.micro_batch_size) + " samples: " + std::to_string(options.batch_size) +
                   " do not fit into memory");
    }
  }
  components::empty_cache(experiment.device);
  return measure(experiment, options);
}

}  // namespace runner::train
