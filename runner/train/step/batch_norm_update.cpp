#include "runner/train/step/batch_norm_update.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/eval_weights.h"
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

}  // namespace

bool update_batch_norm(const Experiment& experiment, const BatchNormUpdateOptions& options) {
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

}  // namespace runner::train
