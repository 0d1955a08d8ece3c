#include "runner/resolve/quantized_folder.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runner/pretrained/config.h"

namespace runner::resolve {
namespace {

using core::Node;

constexpr const char* kSection = "quantization";
/// What has no effect here, so that it may be another one.
constexpr const char* kIdle[] = {"bnb_4bit_compute_dtype", "bnb_4bit_quant_storage"};

/// What Transformers' BitsAndBytesConfig has where it is silent.
Node usual(const std::string& key) {
  if (key == "bnb_4bit_quant_type") return Node::string("fp4");
  if (key == "llm_int8_threshold") return Node::floating(6.0);
  if (key == "llm_int8_skip_modules") return Node::sequence();
  return Node::boolean(false);
}

bool is_same(const Node& here, const Node& there) {
  if (here.is_number() && there.is_number()) return here.as_double() == there.as_double();
  return here.same_value(there);
}

}  // namespace

void take_quantization(Node& recipe, const std::string& file, core::Diagnostics& diagnostics) {
  std::optional<Node> of_folder = pretrained::read_quantization(file, diagnostics);
  if (!of_folder) return;
  const Node* written = recipe.find(kSection);
  if (written != nullptr && !written->is_mapping() && !written->is_null()) return;  // validation refuses it
  if (written == nullptr || written->is_null()) {
    of_folder->add_history({"init_from: " + file, core::Origin::kSettled});
    const core::Location at = recipe.find("init_from")->location();
    of_folder->set_location(at);
    recipe.set(kSection, std::move(*of_folder), at);
    return;
  }
  Node section = *written;
  for (const Node::Entry& entry : written->entries()) {
    const bool is_idle =
        std::any_of(std::begin(kIdle), std::end(kIdle), [&entry](const char* key) { return entry.key == key; });
    const Node* found = of_folder->find(entry.key);
    const Node there = found != nullptr ? *found : usual(entry.key);
    if (is_idle || entry.value.is_null() || is_same(entry.value, there)) continue;
    diagnostics.error(entry.value.location(),
                      "quantization." + entry.key + " is " + core::to_json(entry.value, -1) + ", but " + file +
                          " has " + core::to_json(there, -1) + ": its weights are quantized already",
                      "leave quantization out, which is taken from there; or name a folder in 16 bits");
    recipe.set(kSection, std::move(*of_folder), section.location());  // no rule is to say more
    return;
  }
  for (const Node::Entry& entry : of_folder->entries()) {
    if (section.find(entry.key) != nullptr) continue;
    Node value = entry.value;
    value.add_history({"init_from: " + file, core::Origin::kSettled});
    section.set(entry.key, std::move(value), section.location());
  }
  recipe.set(kSection, std::move(section), written->location());
}

}  // namespace runner::resolve
