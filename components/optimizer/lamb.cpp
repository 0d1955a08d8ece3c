#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/lamb.h"  // Config; declares make()

namespace components::optimizer::lamb {
namespace {

const void* begin_of(const kernels::Slice& slice) { return slice.parameter; }
const void* begin_of(const kernels::TensorSlice& slice) { return slice.parameter.unsafeGetTensorImpl(); }

class Lamb final : public GroupedOptimizer {
 public:
  Lamb(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"exp_avg", "exp_avg_sq"}),
        config_(config) {}

 protected:
  void update(const Batch& batch) override {
    const auto t = static_cast<double>(batch.step);
    kernels::LambStep step{};
    step.common = {config_.maximize ? -1.0F : 1.0F, 0.0F, 1.0F};
    step.beta1 = kernels::Decay(config_.betas[0]);
    step.beta2 = kernels::Decay(config_.betas[1]);
    step.eps = static_cast<float>(config_.eps);
    step.mean_scale = static_cast<float>(1.0 - std::pow(config_.betas[0], t));
    step.square_scale = static_cast<float>(1.0 - std::pow(config_.betas[1], t));
    step.decay = static_cast<float>(batch.weight_decay);

    // The pieces' sums are added in their order, so that the norms do not depend on the threads.
    std::vector<std::map<const void*, kernels::SquareSums>> sums(batch.parameters.size());
    std::mutex mutex;
    for_each_slice(batch, 2, [&](const auto& slice, std::size_t i) {
      const kernels::SquareSums part = kernels::lamb_moments(slice, step);
      const std::lock_guard<std::mutex> lock(mutex);
      sums[i][begin_of(slice)] = part;
    });
    std::vector<float> rates(batch.parameters.size());
    for (std::size_t i = 0; i < rates.size(); ++i) {
      kernels::SquareSums whole;
      for (const auto& [begin, part] : sums[i]) {
        whole.parameter += part.parameter;
        whole.direction += part.direction;
      }
      const double size = std::min(std::sqrt(whole.parameter), config_.max_trust_ratio);
      const double direction = std::sqrt(whole.direction);
      rates[i] = static_cast<float>(size > 0 && direction > 0 ? batch.lr * size / direction : batch.lr);
    }
    for_each_slice(batch, 2, [&](const auto& slice, std::size_t i) { kernels::lamb_apply(slice, step, rates[i]); });
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Lamb>(inputs.groups, config);
}

}  // namespace components::optimizer::lamb
