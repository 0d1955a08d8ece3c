#include <ATen/ops/matmul.h>
#include <ATen/ops/norm.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/optimizer/factored.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adafactor.h"  // Config; declares make()

namespace components::optimizer::adafactor {
namespace {

/// Mean of the squares along one dimension, which stays with size 1.
at::Tensor mean_square(const at::Tensor& tensor, std::int64_t dim) {
  return at::norm(tensor, 2, dim, /*keepdim=*/true).square_().div_(tensor.size(dim));
}

class Adafactor final : public Factored {
 public:
  Adafactor(std::vector<ParamGroup> groups, const Config& config)
      : Factored(std::move(groups), config.lr, config.weight_decay, {"row_var", "col_var", "variance"}),
        config_(config) {}

 protected:
  void update_one(const Batch& batch, std::size_t i) const override {
    const at::Tensor& parameter = batch.parameters[i];
    const at::Tensor gradient = config_.maximize ? batch.gradients[i].neg() : batch.gradients[i];
    const auto t = static_cast<double>(batch.step);
    const double weight = std::pow(t, config_.beta2_decay);
    const double rate = std::max(config_.eps[1], root_mean_square(parameter)) * std::min(batch.lr, 1.0 / std::sqrt(t));
    if (batch.weight_decay != 0.0) parameter.mul_(1.0 - batch.lr * batch.weight_decay);
    at::Tensor estimate;
    if (gradient.dim() > 1) {
      const at::Tensor &row = batch.buffers[kRow][i], &column = batch.buffers[kColumn][i];
      row.lerp_(mean_square(gradient, -1), weight);
      column.lerp_(mean_square(gradient, -2), weight);
      estimate = at::matmul(row, column);
      estimate.div_(row.mean(-2, /*keepdim=*/true).clamp_min_(config_.eps[0]));
    } else {
      const at::Tensor& variance = batch.buffers[kWhole][i];
      variance.lerp_(gradient.square(), weight);
      estimate = variance.clone();
    }
    const at::Tensor update = estimate.clamp_min_(config_.eps[0] * config_.eps[0]).rsqrt_().mul_(gradient);
    parameter.sub_(update, rate / std::max(1.0, root_mean_square(update) / config_.d));
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Adafactor>(inputs.groups, config);
}

}  // namespace components::optimizer::adafactor
