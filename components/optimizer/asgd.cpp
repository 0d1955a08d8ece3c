#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/asgd.h"  // Config; declares make()

namespace components::optimizer::asgd {
namespace {

enum Buffer : std::size_t { kAx, kEta, kMu };

class Asgd final : public GroupedOptimizer {
 public:
  Asgd(std::vector<ParamGroup> groups, const Config& config)
      : GroupedOptimizer(std::move(groups), config.lr, config.weight_decay, {"ax", "eta", "mu"}), config_(config) {}
  int state_tensors_per_parameter() const override { return 1; }

 protected:
  void update(const Batch& batch) override {
    const auto t = static_cast<double>(batch.step);
    const auto of = [&batch](Buffer kind, std::size_t i) { return batch.buffers[kind][i].mutable_data_ptr<float>(); };
    if (batch.step == 1) {
      for (std::size_t i = 0; i < batch.parameters.size(); ++i) *of(kEta, i) = static_cast<float>(batch.lr);
    }
    for_each_slice(batch, 1, [&](const auto& slice, std::size_t i) {
      kernels::AsgdStep step{};
      step.eta = *of(kEta, i);
      step.mu = *of(kMu, i);
      step.common = {config_.maximize ? -1.0F : 1.0F, static_cast<float>(batch.weight_decay),
                     static_cast<float>(1.0 - config_.lambd * static_cast<double>(step.eta))};
      kernels::asgd(slice, step);
    });
    const double eta = batch.lr / std::pow(1.0 + config_.lambd * batch.lr * t, config_.alpha);
    const double mu = 1.0 / std::max(1.0, t - config_.t0);
    for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
      *of(kEta, i) = static_cast<float>(eta);
      *of(kMu, i) = static_cast<float>(mu);
    }
  }
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const override {
    return kind == kAx ? at::zeros_like(parameter.tensor) : at::ones({}, at::kFloat);
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Asgd>(inputs.groups, config);
}

}  // namespace components::optimizer::asgd
