#include "runner/train/experiment/build/quantized_forms.h"

#include "components/adapter/quantized_layers.h"
#include "components/tensor/tensors.h"
#include "generated/section/quantization.h"
#include "runner/core/node.h"

namespace runner::train {

using components::part::QuantizedForm;
using Forms = components::part::QuantizedWeights::Forms;

Forms quantized_forms(const resolve::Recipe& recipe, const components::model::Model& on_meta, bool for_training,
                      core::Diagnostics& diagnostics) {
  if (!recipe.quantization) return {};
  const auto& config = *recipe.quantization;
  QuantizedForm form;
  using Type = sections::quantization::Bnb4bitQuantType;
  form.kind = config.load_in_8bit                        ? QuantizedForm::Kind::kInt8
              : config.bnb_4bit_quant_type == Type::kNf4 ? QuantizedForm::Kind::kNf4
                                                         : QuantizedForm::Kind::kFp4;
  form.threshold = config.llm_int8_threshold;
  form.double_quant = config.bnb_4bit_use_double_quant;
  const core::Node& section = recipe.at("quantization");
  Forms forms = components::adapter::quantized_layers(form, *section.find("llm_int8_skip_modules"), on_meta,
                                                      recipe.model, diagnostics);
  if (config.quantize_moe_experts) {
    forms.merge(
        components::adapter::quantized_experts(form, *section.find("quantize_moe_experts"), on_meta, diagnostics));
  }
  if (!for_training) return forms;
  for (const components::NamedTensor& parameter : on_meta.parameters()) {
    if (!parameter.tensor.requires_grad() || !forms.contains(parameter.name)) continue;
    diagnostics.error(
        section.location(), "quantization keeps " + parameter.name + " in fewer bits, and it is to be trained",
        recipe.adapters.empty() ? "add adapters: [{type: lora}], which are trained on the quantized weights"
                                : "remove it from training.train_only, or name its layer in "
                                  "quantization.llm_int8_skip_modules");
    break;
  }
  return forms;
}

}  // namespace runner::train
