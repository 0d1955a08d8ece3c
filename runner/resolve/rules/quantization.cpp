#include <optional>
#include <string>

#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

/// Whether products of that precision have the type that bitsandbytes calls so.
bool has_type(const std::string& precision, const std::string& type) {
  if (type == "bfloat16") return precision.starts_with("bf16");
  return type == "float16" ? precision.starts_with("16") : precision.starts_with("32");
}

}  // namespace

void quantization(SettledTree& tree) {
  const core::Node* section = tree.value("quantization");
  if (section == nullptr || !section->is_mapping()) return;
  if (tree.is_true("quantization.load_in_8bit")) {
    return tree.error("quantization.load_in_8bit", "roux does not keep weights in 8 bits yet",
                      "use load_in_4bit: true, with bnb_4bit_quant_type: nf4");
  }
  if (!tree.is_true("quantization.load_in_4bit")) {
    return tree.error("quantization", "quantization says neither load_in_4bit nor load_in_8bit",
                      "add load_in_4bit: true, or remove quantization");
  }
  if (!tree.text("init_from.path") && !tree.was_refused("init_from.path")) {
    tree.error("quantization", "quantization is of trained weights, and init_from names none",
               "add init_from: a folder of Transformers");
  }
  if (const auto exported = tree.text("checkpoint.export"); exported && *exported == "merged") {
    tree.error("checkpoint.export",
               "checkpoint.export is merged, and an adapter on weights in 4 bits is not merged yet",
               "write export: transformers, which writes the adapter alone");
  }
  const std::optional<std::string> type = tree.text("quantization.bnb_4bit_compute_dtype");
  const std::optional<std::string> precision = tree.text("precision.mode");
  if (type && precision && !has_type(*precision, *type)) {
    tree.notice("quantization.bnb_4bit_compute_dtype",
                "precision decides the type of products: with " + *precision + " it is not " + *type);
  }
}

}  // namespace runner::resolve
