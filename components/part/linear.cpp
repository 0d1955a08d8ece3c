#include "components/part/linear.h"

#include "components/part/float_product.h"
#include "components/part/quantized_product.h"
#include "components/tensor/tensors.h"

namespace components::part {

Linear::Linear(Declared& declared, const std::string& name, const LinearOptions& options) {
  const std::int64_t of_weight[] = {options.out, options.in}, of_bias[] = {options.out};
  const std::string weight = name + ".weight";
  if (const QuantizedForm* form = declared.form_of(weight)) {
    product_ = std::make_unique<QuantizedProduct>(*form, options.out, options.in, declared.on_meta());
  } else {
    product_ = std::make_unique<FloatProduct>(declared.parameter(weight, of_weight, options.weight));
  }
  if (options.bias) bias_ = Weight(declared.parameter(name + ".bias", of_bias, *options.bias));
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  const at::Tensor product = product_->forward(x, bias_.tensor());
  if (terms().empty()) return product;
  // Not added in place: recomputed blocks may keep what a product gave, and would take it for the product again.
  const at::Tensor y = product.clone();
  for (const auto& term : terms()) term->add(y, x);
  return y;
}

void Linear::set_training(bool training) {
  product_->set_training(training);
  for (const auto& term : terms_) term->set_training(training);
}

double Linear::flops() const {
  return 2.0 * static_cast<double>(product_->in()) * static_cast<double>(product_->out());
}

const std::vector<std::shared_ptr<LinearTerm>>& Linear::terms() const {
  static const std::vector<std::shared_ptr<LinearTerm>> none;
  return leaves_out_ ? none : terms_;
}

void LinearTermBackward::to_product(const at::Tensor&) {}

bool is_of_term(std::string_view name) {
  const std::size_t at = name.rfind(".lora_");
  if (at == std::string_view::npos) return false;
  const std::string_view what = name.substr(at + 1);
  if (what.starts_with("lora_A.") || what.starts_with("lora_B.")) return what.ends_with(".weight");
  return what == "lora_magnitude_vector" || what.starts_with("lora_magnitude_vector.");
}

}  // namespace components::part
