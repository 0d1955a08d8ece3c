#include "components/part/float_product.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "components/ops/kernel_policy.h"
#include "components/ops/matmul.h"
#include "components/part/row_products.h"
#include "components/tensor/autocast.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

class FloatProductBackward final : public ProductBackward {
 public:
  /// `low_OI`: the copy that was multiplied, in bfloat16. Else the weight is read again, which notices a change.
  FloatProductBackward(const at::Tensor& weight_OI, at::Tensor low_OI, bool bf16)
      : type_(weight_OI.scalar_type()), low_OI_(std::move(low_OI)), bf16_(bf16) {
    if (!low_OI_.defined()) weight_OI_ = torch::autograd::SavedVariable(weight_OI, false);
  }

  at::Tensor to_input(const at::Tensor& dy_NO) const override {
    return product(dy_NO, low_OI_.defined() ? low_OI_ : for_products(weight_OI_.unpack(), bf16_));
  }

  at::Tensor to_weight(const at::Tensor& dy_NO, const at::Tensor& x_NI) const override {
    return matmul_float32(dy_NO.t(), x_NI).to(type_);
  }

 private:
  at::ScalarType type_;  // of the weight
  at::Tensor low_OI_;
  torch::autograd::SavedVariable weight_OI_;
  bool bf16_;
};

}  // namespace

void Product::fill(const at::Tensor&) { RUNNER_ASSERT(false, "a parameter is filled by its name"); }
void Product::fill(const std::vector<const runner::pretrained::PackedWeight*>&) {
  RUNNER_ASSERT(false, "a parameter is filled by its name");
}

std::int64_t FloatProduct::bytes() const { return static_cast<std::int64_t>(weight_.tensor().nbytes()); }
std::int64_t FloatProduct::in() const { return weight_.tensor().size(1); }
std::int64_t FloatProduct::out() const { return weight_.tensor().size(0); }

std::pair<const void*, std::uint32_t> FloatProduct::version() const {
  const at::Tensor& weight = weight_.tensor();
  const bool is_here = !weight.is_meta() && weight.storage().nbytes() > 0;
  return {is_here ? weight.const_data_ptr() : nullptr, static_cast<std::uint32_t>(weight._version())};
}

at::Tensor FloatProduct::forward(const at::Tensor& x, const at::Tensor& bias) const {
  const at::Tensor& own = weight_.tensor();
  const at::Tensor weight = own.requires_grad() || Autocast::is_on(x.device().type()) ? own : own.to(x.scalar_type());
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor FloatProduct::as_input(const at::Tensor& x) const { return x.to(weight_.tensor().scalar_type()); }

bool FloatProduct::fits_nodes(bool bf16) const {
  const at::Tensor& weight = weight_.tensor();
  if (weight.scalar_type() == at::kFloat) return true;
  return weight.scalar_type() == at::kBFloat16 && (!weight.requires_grad() || bf16);
}

std::unique_ptr<ProductBackward> FloatProduct::in_node(const at::Tensor& x_NI, at::Tensor& y_NO,
                                                       bool with_backward) const {
  const bool bf16 = x_NI.scalar_type() == at::kBFloat16;
  const at::Tensor weight = weight_.for_products(bf16, keeps_low_weights());
  y_NO = product(x_NI, weight.t());
  if (!with_backward) return nullptr;
  return std::make_unique<FloatProductBackward>(weight_.tensor(), bf16 && keeps_low_weights() ? weight : at::Tensor(),
                                                bf16);
}

bool FloatProduct::fits_rows() const {
  const auto type = weight_.tensor().scalar_type();
  return type == at::kFloat || type == at::kBFloat16;
}

bool FloatProduct::rows_in_bf16(bool of_pass) const {
  return of_pass || weight_.tensor().scalar_type() == at::kBFloat16;
}

at::Tensor FloatProduct::rows(const at::Tensor& x_NI) const {
  return row_products(x_NI, weight_.for_products(x_NI.scalar_type() == at::kBFloat16, /*keeps=*/true));
}

at::Tensor FloatProduct::weight(std::int64_t first, std::int64_t count, bool bf16) const {
  if (bf16) return weight_.for_products(true, keeps_low_weights()).narrow(0, first, count);
  return weight_.tensor().narrow(0, first, count).to(at::kFloat);
}

}  // namespace components::part
