#include <ATen/ops/matmul.h>
#include <ATen/ops/norm.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/optimizer/factored.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensors.h"
#include "generated/optimizer/adafactor.h"  // Config; declares make()

namespace components::optimizer::adafactor {
namespace {

/// Mean of the squares along one dimension, which stays with size 1.
at::Tensor mean_square(const at::Tensor& tensor, std::int64_t dim) {
  return at::norm(tensor, 2, dim, /*keepdim=*/true).square_().div_(tensor.size(dim));
}

class Adafactor final : public GroupedOptimizer {
 public:
  Adafactor(std::vector<Group> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"row_var", "col_var", "variance"}),
        config_(config) {}
  /// Rows and columns beside whole matrices: next to nothing.
  int moments() const override { return 0; }
  /// The squares of the gradient, and the update.
  std::int64_t step_bytes(std::int64_t parameter_bytes) const override { return 2 * parameter_bytes; }

 protected:
  void update(const Batch& batch) override {
    for (std::size_t i = 0; i < batch.parameters.size(); ++i) update_one(batch, i);
  }
  at::Tensor new_buffer(std::size_t kind, const at::Tensor& parameter) const override {
    return Factored::new_buffer(kind, parameter);
  }

 private:
  void update_one(const Batch& batch, std::size_t i) const {
    const at::Tensor& parameter = batch.parameters[i];
    const at::Tensor gradient = config_.maximize ? batch.gradients[i].neg() : batch.gradients[i];
    const auto t = static_cast<double>(batch.step);
    const double weight = std::pow(t, config_.beta2_decay);
    const double rate = std::max(config_.eps[1], root_mean_square(parameter)) * std::min(batch.lr, 1.0 / std::sqrt(t));
    if (batch.weight_decay != 0.0) parameter.mul_(1.0 - batch.lr * batch.weight_decay);
    at::Tensor estimate;
    if (gradient.dim() > 1) {
      const at::Tensor &row = batch.buffers[Factored::kRow][i], &column = batch.buffers[Factored::kColumn][i];
      row.lerp_(mean_square(gradient, -1), weight);
      column.lerp_(mean_square(gradient, -2), weight);
      estimate = at::matmul(row, column);
      estimate.div_(row.mean(-2, /*keepdim=*/true).clamp_min_(config_.eps[0]));
    } else {
      const at::Tensor& variance = batch.buffers[Factored::kWhole][i];
      variance.lerp_(gradient.square(), weight);
      estimate = variance.clone();
    }
    const at::Tensor update = estimate.clamp_min_(config_.eps[0] * config_.eps[0]).rsqrt_().mul_(gradient);
    parameter.sub_(update, rate / std::max(1.0, root_mean_square(update) / config_.d));
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Adafactor>(inputs.groups, config);
}

}  // namespace components::optimizer::adafactor
