#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/muon.h"  // Config; declares make()
#include "runner/core/language/name_map.h"

namespace components::optimizer::muon {
namespace {

enum Buffer : std::size_t { kMomentum, kExpAvg, kExpAvgSq };

/// The nearest orthogonal matrix, roughly: all singular values come close to 1.
///
/// Source  torch.optim._muon._zeropower_via_newtonschulz
at::Tensor orthogonalise(const at::Tensor& matrix, const Config& config) {
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = matrix.to(at::kBFloat16);
  if (tall) x = x.t();
  x = x.div(x.norm().clamp_min(config.eps));
  const auto& [a, b, c] = std::tie(config.ns_coefficients[0], config.ns_coefficients[1], config.ns_coefficients[2]);
  for (std::int64_t step = 0; step < config.ns_steps; ++step) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, b, c), x, a, 1.0);
  }
  return tall ? x.t() : x;
}

class Muon final : public GroupedOptimizer {
 public:
  Muon(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay,
                         {"momentum_buffer", "exp_avg", "exp_avg_sq"}),
        config_(config) {
    for (const ParamGroup& group : this->groups()) {
      for (const NamedTensor& parameter : group.parameters) {
        const bool named =
            std::any_of(config.adamw_params.begin(), config.adamw_params.end(),
                        [&](const std::string& p) { return runner::core::matches_wildcard(p, parameter.name); });
        if (parameter.tensor.dim() < 2 || named) continue;
        matrices_.insert(parameter.tensor.unsafeGetTensorImpl());
        matrix_names_.insert(parameter.name);
      }
    }
  }
  /// Two for what AdamW moves, one for the rest.
  int state_tensors_per_parameter() const override { return matrices_.empty() ? 2 : 1; }

 protected:
  void update(const Batch& batch) override {
    std::vector<at::Tensor> parameters, gradients, exp_avg, exp_avg_sq;
    for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
      if (is_matrix(batch.parameters[i])) {
        move_matrix(batch, i);
        continue;
      }
      parameters.push_back(batch.parameters[i]);
      gradients.push_back(batch.gradients[i]);
      exp_avg.push_back(batch.buffers[kExpAvg][i]);
      exp_avg_sq.push_back(batch.buffers[kExpAvgSq][i]);
    }
    if (parameters.empty()) return;
    const auto where_moved = at::TensorOptions(at::kFloat).device(parameters.front().device());
    const std::vector<at::Tensor> steps(parameters.size(),
                                        at::scalar_tensor(static_cast<double>(batch.step), where_moved));
    const double lr = batch.group.lr.value_or(config_.adamw_lr) * batch.lr_factor;
    at::_ops::_fused_adamw_::call(parameters, gradients, exp_avg, exp_avg_sq, {}, steps, lr, config_.adamw_betas[0],
                                  config_.adamw_betas[1], batch.weight_decay, config_.adamw_eps, /*amsgrad=*/false,
                                  /*maximize=*/false, {}, {});
  }
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const override {
    const bool has_momentum = matrix_names_.contains(parameter.name);
    return has_momentum == (kind == kMomentum) ? at::zeros_like(parameter.tensor) : at::Tensor();
  }

 private:
  bool is_matrix(const at::Tensor& parameter) const { return matrices_.contains(parameter.unsafeGetTensorImpl()); }

  void move_matrix(const Batch& batch, std::size_t i) const {
    const at::Tensor &parameter = batch.parameters[i], &gradient = batch.gradients[i];
    const at::Tensor& mean = batch.buffers[kMomentum][i];
    mean.lerp_(gradient, 1.0 - config_.momentum);
    const at::Tensor direction = config_.nesterov ? gradient.lerp(mean, config_.momentum) : mean;
    // A convolution's kernel is a matrix of its output channels, and the experts of a mixture are a stack of matrices.
    const bool is_stack = direction.dim() == 3;
    const at::Tensor flat = is_stack ? direction.select(0, 0) : direction.flatten(1);
    const auto rows = static_cast<double>(flat.size(0)), columns = static_cast<double>(flat.size(1));
    const double ratio = config_.adjust_lr_fn == AdjustLrFn::kOriginal ? std::sqrt(std::max(1.0, rows / columns))
                                                                       : 0.2 * std::sqrt(std::max(rows, columns));
    parameter.mul_(1.0 - batch.lr * batch.weight_decay);
    if (!is_stack) {
      parameter.sub_(orthogonalise(flat, config_).reshape(parameter.sizes()), batch.lr * ratio);
      return;
    }
    for (std::int64_t i = 0; i < direction.size(0); ++i) {
      parameter.select(0, i).sub_(orthogonalise(direction.select(0, i), config_), batch.lr * ratio);
    }
  }

  Config config_;
  std::set<const void*> matrices_;
  std::set<std::string> matrix_names_;  // of them, also where a tensor has the shape alone
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Muon>(inputs.groups, config);
}

}  // namespace components::optimizer::muon
