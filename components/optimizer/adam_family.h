#pragma once

#include <memory>
#include <string>
#include <vector>

#include "components/optimizer/grouped.h"
#include "runner/core/tensor_fwd.h"

namespace components::optimizer {

/// Adam and AdamW: the same buffers and kernel arguments; they differ in what weight decay does.
class AdamFamily final : public GroupedOptimizer {
 public:
  struct Options {
    double lr, beta1, beta2, eps, weight_decay;
    bool amsgrad, maximize;
    bool decoupled;  ///< AdamW: decay shrinks the parameter; Adam: it joins the gradient
  };
  AdamFamily(std::vector<ParamGroup> groups, const Options& options);
  ~AdamFamily() override;
  bool has_momentum() const override { return true; }
  bool can_skip() const override { return true; }
  bool can_capture() const override { return true; }

 protected:
  void update(const Batch& batch) override;

 private:
  /// The step count of a batch as the kernel wants it: a float32 scalar.
  at::Tensor step_scalar(const Batch& batch);

  Options options_;
  at::Tensor step_scalar_;  // undefined before the first step
};

}  // namespace components::optimizer
