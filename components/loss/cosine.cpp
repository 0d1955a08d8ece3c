// B: vectors   O: values of one

#include <ATen/core/Reduction.h>
#include <ATen/ops/cosine_embedding_loss.h>
#include <ATen/ops/ones.h>

#include <memory>

#include "components/loss/value_loss.h"
#include "generated/loss/cosine.h"  // Config; declares make()

namespace components::loss::cosine {
namespace {

class Cosine final : public ValueLoss {
 public:
  std::int64_t count(const TensorMap& batch) const override {
    const at::Tensor& target = batch.at(kTarget);
    return target.numel() / target.size(-1);
  }

 private:
  at::Tensor sum_of_values(const at::Tensor& output, const at::Tensor& target) const override {
    const at::Tensor output_BO = output.reshape({-1, output.size(-1)});
    const at::Tensor alike_B = at::ones({output_BO.size(0)}, output.options());
    return at::cosine_embedding_loss(output_BO, target.reshape({-1, target.size(-1)}), alike_B, /*margin=*/0.0,
                                     at::Reduction::Sum);
  }
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  if (!takes_values("cosine", inputs)) return nullptr;
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.shape.size() > 1 && target.shape.back() != 1) return std::make_shared<Cosine>();
  inputs.diagnostics.error(inputs.block.location(),
                           "cosine compares directions of vectors, but the target is one value, " + to_text(target),
                           "use mse, l1 or huber for single values");
  return nullptr;
}

}  // namespace components::loss::cosine
