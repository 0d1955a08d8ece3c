#include "components/adapter/quantized_layers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "components/adapter/target_names.h"
#include "components/part/linear.h"
#include "runner/pretrained/model_type.h"

namespace components::adapter {
namespace {

using runner::core::Diagnostics;
using runner::core::Node;

/// What is never quantised, and may be named all the same.
constexpr std::array<std::string_view, 5> kNeverQuantized = {"lm_head", "score", "classifier", "embed_tokens",
                                                             "embed_out"};

/// Whether layers of that name keep their type in every model of the type.
bool is_kept(const runner::pretrained::ModelType* type, const Target& target) {
  if (type == nullptr) return false;
  const std::string last = target.module.substr(target.module.find_last_of('.') + 1);
  return std::find(type->not_quantized.begin(), type->not_quantized.end(), last) != type->not_quantized.end();
}

/// By place in `all`, whether the layer is named.
std::vector<bool> skipped(const Node& skip, const std::vector<Target>& all, Diagnostics& diagnostics) {
  Node names = Node::sequence({}, skip.location());
  std::vector<bool> skips(all.size());
  for (const Node& name : skip.items()) {
    bool is_other =
        std::find(kNeverQuantized.begin(), kNeverQuantized.end(), name.as_string()) != kNeverQuantized.end();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].module.starts_with(name.as_string() + ".")) continue;
      skips[i] = is_other = true;  // a module with layers below it
    }
    if (!is_other) names.items().push_back(name);
  }
  if (names.items().empty()) return skips;
  const std::vector<bool> named = TargetNames("llm_int8_skip_modules", names, all, diagnostics).chosen();
  std::transform(named.begin(), named.end(), skips.begin(), skips.begin(), std::logical_or<>());
  return skips;
}

}  // namespace

part::QuantizedWeights::Forms quantized_layers(const part::QuantizedForm& form, const Node& skip,
                                               const model::Model& model, const Node& model_block,
                                               Diagnostics& diagnostics) {
  part::QuantizedWeights::Forms forms;
  const std::vector<Target> all = all_targets(model, model_block);
  if (all.empty()) {
    diagnostics.error(model_block.location(),
                      "quantization is of the linear layers of a transformer, and this model has none",
                      "use a model of Transformers, gpt or llama, or remove quantization");
    return forms;
  }
  std::vector<bool> is_skipped = skipped(skip, all, diagnostics);
  const auto* const type = runner::pretrained::model_type_of(model_block);
  for (std::size_t i = 0; i < all.size(); ++i) is_skipped[i] = is_skipped[i] || is_kept(type, all[i]);
  for (std::size_t i = 0; i < all.size();) {
    const part::NamedLinear& owner = all[i].owner;
    part::QuantizedForm own = form;
    std::size_t skips = 0, joined = 0;
    for (; i < all.size() && all[i].owner.name == owner.name; ++i, ++joined) {
      own.rows.push_back(all[i].out);
      if (is_skipped[i]) ++skips;
    }
    if (skips == joined) continue;
    if (skips > 0) {
      diagnostics.error(skip.location(),
                        "llm_int8_skip_modules names a part of " + owner.name + ", whose layers are one product",
                        "name all of them, or none");
      return forms;
    }
    if (owner.linear->product().in() % 2 != 0) {
      diagnostics.error(model_block.location(),
                        owner.name + " has rows of " + std::to_string(owner.linear->product().in()) +
                            " numbers, and quantization takes two at a time",
                        "add it to quantization.llm_int8_skip_modules");
      return forms;
    }
    forms.emplace(owner.name + ".weight", std::move(own));
  }
  return forms;
}

}  // namespace components::adapter
