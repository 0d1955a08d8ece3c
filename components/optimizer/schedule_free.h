#pragma once

#include <optional>
#include <vector>

#include "components/optimizer/grouped.h"
#include "runner/core/tensor_fwd.h"

namespace components::optimizer {

/// SGD and AdamW without a schedule. Gradients are taken at y, the parameters while training; z takes the plain steps,
/// and x, the average of all z, is evaluated: y = (1 - momentum) z + momentum x.
///
/// Source  Defazio et al., The Road Less Scheduled, arXiv:2405.15682; schedulefree 1.4.1. Its step counter belongs to a
///         group, ours to a parameter: they differ for parameters that have no gradient in some steps.
class ScheduleFree final : public GroupedOptimizer {
 public:
  struct Options {
    double lr, weight_decay;
    double momentum;              ///< beta1 of AdamW
    std::optional<double> beta2;  ///< AdamW only
    double eps;
    std::int64_t warmup_steps;
    double r, weight_lr_power;
  };
  ScheduleFree(std::vector<ParamGroup> groups, const Options& options);
  int state_tensors_per_parameter() const override { return options_.beta2 ? 2 : 1; }
  bool has_eval_weights() const override { return true; }

 protected:
  void update(const Batch& batch) override;
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const override;
  void compute_eval_weights(at::Tensor& parameter, const std::vector<at::Tensor>& buffers) const override;

 private:
  Options options_;
};

}  // namespace components::optimizer
