#include <optional>
#include <string>
#include <utility>

#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

/// Whether products of that precision have the type that bitsandbytes calls so.
bool has_type(const std::string& precision, const std::string& type) {
  if (type == "bfloat16") return precision.starts_with("bf16");
  return type == "float16" ? precision.starts_with("16") : precision.starts_with("32");
}

/// Keys of the other way, with the values that say nothing: a recorded recipe has all keys.
constexpr std::pair<const char*, const char*> kOfFourBits[] = {
    {"bnb_4bit_quant_type", "fp4"}, {"bnb_4bit_use_double_quant", "false"}, {"bnb_4bit_compute_dtype", "null"}};

void refuse_other(SettledTree& tree, bool is_other, const char* key, const char* idle, const char* of) {
  const std::string path = std::string("quantization.") + key;
  const core::Node* value = tree.value(path);
  if (!is_other || value == nullptr || value->scalar_text() == idle) return;
  tree.error(path, path + " is of " + of, "remove it");
}

}  // namespace

void quantization(SettledTree& tree) {
  const core::Node* section = tree.value("quantization");
  if (section == nullptr || !section->is_mapping()) return;
  const bool in_8 = tree.is_true("quantization.load_in_8bit"), in_4 = tree.is_true("quantization.load_in_4bit");
  if (in_8 && in_4) {
    return tree.error("quantization.load_in_8bit", "quantization says both load_in_4bit and load_in_8bit",
                      "remove one of them");
  }
  if (!in_8 && !in_4) {
    return tree.error("quantization", "quantization says neither load_in_4bit nor load_in_8bit",
                      "add load_in_4bit: true, or remove quantization");
  }
  for (const auto& [key, idle] : kOfFourBits) refuse_other(tree, in_8, key, idle, "load_in_4bit");
  refuse_other(tree, in_4, "llm_int8_threshold", "6.0", "load_in_8bit");
  if (!tree.text("init_from.path") && !tree.was_refused("init_from.path")) {
    tree.error("quantization", "quantization is of trained weights, and init_from names none",
               "add init_from: a folder of Transformers");
  }
  const std::optional<std::string> type = tree.text("quantization.bnb_4bit_compute_dtype");
  const std::optional<std::string> precision = tree.text("precision.mode");
  if (type && precision && !has_type(*precision, *type)) {
    tree.notice("quantization.bnb_4bit_compute_dtype",
                "precision decides the type of products: with " + *precision + " it is not " + *type);
  }
}

}  // namespace runner::resolve
