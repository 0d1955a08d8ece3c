#include "runner/checkpoint/packed_fit.h"

#include <cstddef>
#include <cstdint>

#include "components/part/quantized_product.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/pretrained/packed/packed_weight.h"

namespace runner::checkpoint {
namespace {

using components::part::QuantizedForm;
using pretrained::PackedWeight;

std::string form_text(PackedWeight::Kind kind, bool is_nested) {
  if (kind == PackedWeight::Kind::kInt8) return pretrained::packed_word(kind);
  return std::string(pretrained::packed_word(kind)) +
         (is_nested ? " with scales in 8 bits" : " with scales in 32 bits");
}

}  // namespace

std::string why_not_packed(const components::part::Product& layer, const std::vector<const PackedWeight*>& weights,
                           const std::vector<std::string>& names) {
  const QuantizedForm& form = static_cast<const components::part::QuantizedProduct&>(layer).form();
  const bool is_nested = form.double_quant && form.kind != QuantizedForm::Kind::kInt8;
  const std::string wanted = form_text(form.kind, is_nested);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const PackedWeight* weight = weights[i];
    if (weight == nullptr) return names[i] + " is not quantized there, and " + wanted + " in the model";
    if (weight->kind != form.kind || weight->is_nested() != is_nested) {
      return names[i] + " is " + form_text(weight->kind, weight->is_nested()) + " there and " + wanted +
             " in the model";
    }
  }
  if (weights.size() != form.rows.size()) return names.front() + " is not cut into layers as in the model";
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::vector<std::int64_t> here = {form.rows[i], layer.in()}, there = {weights[i]->out, weights[i]->in};
    if (here == there) continue;
    return names[i] + " is " + artifact::shape_text(there) + " there and " + artifact::shape_text(here) +
           " in the model";
  }
  return "";
}

}  // namespace runner::checkpoint
