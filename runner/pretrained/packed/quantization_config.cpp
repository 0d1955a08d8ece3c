#include "runner/pretrained/packed/quantization_config.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::pretrained {
namespace {

using core::Diagnostics;
using core::Node;

constexpr const char* kOurs = "bitsandbytes";
constexpr const char* kMethod = "quant_method";

/// A key of the recipe's section that is one of transformers.BitsAndBytesConfig, too.
struct Key {
  const char* name;
  const char* type;
  bool (Node::*is)() const;
};
constexpr Key kKeys[] = {{"load_in_4bit", "boolean", &Node::is_bool},
                         {"load_in_8bit", "boolean", &Node::is_bool},
                         {"bnb_4bit_quant_type", "a name", &Node::is_string},
                         {"bnb_4bit_use_double_quant", "boolean", &Node::is_bool},
                         {"bnb_4bit_compute_dtype", "a name", &Node::is_string},
                         {"bnb_4bit_quant_storage", "a name", &Node::is_string},
                         {"llm_int8_threshold", "a number", &Node::is_number},
                         {"llm_int8_skip_modules", "a list", &Node::is_sequence}};
/// Keys that say nothing of the weights in the file.
constexpr std::array<std::string_view, 3> kIdle = {kMethod, "llm_int8_enable_fp32_cpu_offload",
                                                   "llm_int8_has_fp16_weight"};

std::string shown(const Node& value) { return core::escape_for_terminal(core::to_json(value, -1)); }

bool is_true(const Node& node, const char* key) {
  const Node* value = node.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

/// Whether they are bitsandbytes': older files do not name it.
bool check_method(const Node& field, Diagnostics& diagnostics) {
  const Node* method = field.find(kMethod);
  const bool is_ours = method != nullptr && method->is_string()
                           ? method->as_string() == kOurs
                           : is_true(field, "load_in_4bit") || is_true(field, "load_in_8bit");
  if (is_ours) return true;
  constexpr const char* kInstead =
      "name the folder of the model in 16 bits that it was made of, with quantization: {load_in_4bit: true, "
      "bnb_4bit_quant_type: nf4}";
  if (method != nullptr && method->is_string()) {
    diagnostics.error(method->location(),
                      "the weights are quantized by " + core::escape_for_terminal(method->as_string()) +
                          ", and roux reads those of bitsandbytes only",
                      kInstead);
  } else {
    diagnostics.error(field.location(),
                      "quantization_config does not say how the weights are quantized: no quant_method", kInstead);
  }
  return false;
}

bool check_names(const Node& field, Diagnostics& diagnostics) {
  bool known = true;
  for (const Node::Entry& entry : field.entries()) {
    const auto is_it = [&entry](const Key& key) { return entry.key == key.name; };
    if (std::any_of(std::begin(kKeys), std::end(kKeys), is_it) || entry.key.starts_with("_") ||
        std::find(kIdle.begin(), kIdle.end(), entry.key) != kIdle.end()) {
      continue;
    }
    std::vector<std::string> names;
    for (const Key& key : kKeys) names.emplace_back(key.name);
    const std::string near = core::closest(entry.key, names);
    diagnostics.error(entry.key_location,
                      core::quote(entry.key) +
                          " is not a field of Transformers' BitsAndBytesConfig: what it does to "
                          "the weights is unknown",
                      near.empty() ? "remove it if it does nothing" : "did you mean \"" + near + "\"?");
    known = false;
  }
  return known;
}

}  // namespace

std::optional<Node> quantization_of(const Node& field, Diagnostics& diagnostics) {
  if (!field.is_mapping()) {
    diagnostics.error(field.location(), std::string(kQuantizationConfig) + " is " + shown(field) + ", not an object");
    return std::nullopt;
  }
  if (!check_method(field, diagnostics) || !check_names(field, diagnostics)) return std::nullopt;
  Node section = Node::mapping(field.location());
  for (const Key& key : kKeys) {
    const Node* value = field.find(key.name);
    if (value == nullptr || value->is_null()) continue;
    if (!(value->*key.is)()) {
      diagnostics.error(value->location(),
                        std::string(key.name) + " is " + shown(*value) + ", but has to be " + key.type);
      return std::nullopt;
    }
    section.set(key.name, *value);
  }
  if (is_true(section, "load_in_4bit") == is_true(section, "load_in_8bit")) {
    diagnostics.error(field.location(), "quantization_config has to say one of load_in_4bit and load_in_8bit");
    return std::nullopt;
  }
  if (const Node* type = section.find("bnb_4bit_quant_type");
      is_true(section, "load_in_4bit") && type != nullptr && type->as_string() != "nf4" && type->as_string() != "fp4") {
    diagnostics.error(type->location(), "bnb_4bit_quant_type is " + shown(*type) + ", and roux reads nf4 and fp4");
    return std::nullopt;
  }
  // Of the other way, which Transformers writes as well.
  const bool in_8 = is_true(section, "load_in_8bit");
  for (const Key& key : kKeys) {
    const std::string_view name = key.name;
    if (in_8 ? name.starts_with("bnb_4bit") : name == "llm_int8_threshold") section.erase(key.name);
  }
  section.erase(in_8 ? "load_in_4bit" : "load_in_8bit");
  return section;
}

Node quantization_config_of(const Node& quantization) {
  Node field = Node::mapping();
  field.set(kMethod, Node::string(kOurs));
  for (const Key& key : kKeys) {
    const Node* value = quantization.find(key.name);
    if (value != nullptr) field.set(key.name, *value);
  }
  for (const char* key : {"bnb_4bit_compute_dtype", "bnb_4bit_quant_storage", "llm_int8_skip_modules"}) {
    const Node* value = field.find(key);
    const bool is_idle = value != nullptr && (value->is_null() || (value->is_sequence() && value->items().empty()));
    if (is_idle) field.erase(key);
  }
  field.set("llm_int8_enable_fp32_cpu_offload", Node::boolean(false));
  field.set("llm_int8_has_fp16_weight", Node::boolean(false));
  return field;
}

}  // namespace runner::pretrained
