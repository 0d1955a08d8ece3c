#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/optimizer/factored.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adalomo.h"  // Config; declares make()

namespace components::optimizer::adalomo {
namespace {

class AdaLomo final : public Factored {
 public:
  AdaLomo(std::vector<ParamGroup> groups, const Config& config)
      : Factored(std::move(groups), config.lr, config.weight_decay, {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"}),
        config_(config) {}
  bool steps_in_backward() const override { return true; }

 protected:
  void update_one(const Batch& batch, std::size_t i) const override {
    const at::Tensor &parameter = batch.parameters[i], &gradient = batch.gradients[i];
    const double weight = std::pow(static_cast<double>(batch.step), config_.decay_rate);
    const at::Tensor square = gradient.square().add_(config_.eps[0]);
    at::Tensor update;
    if (gradient.dim() > 1) {
      const at::Tensor &row = batch.buffers[kRow][i], &column = batch.buffers[kColumn][i];
      row.lerp_(square.mean(-1, /*keepdim=*/true), weight);
      column.lerp_(square.mean(-2, /*keepdim=*/true), weight);
      update = at::matmul(row.div(row.mean(-2, /*keepdim=*/true)).rsqrt_(), column.rsqrt());
    } else {
      const at::Tensor& whole = batch.buffers[kWhole][i];
      whole.lerp_(square, weight);
      update = whole.rsqrt();
    }
    update.mul_(gradient);
    const double rate = batch.lr * std::max(config_.eps[1], root_mean_square(parameter));
    if (batch.weight_decay != 0.0) parameter.mul_(1.0 - rate * batch.weight_decay);
    parameter.sub_(update, rate / std::max(1.0, root_mean_square(update) / config_.clip_threshold));
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<AdaLomo>(inputs.groups, config);
}

}  // namespace components::optimizer::adalomo
