#include "runner/pretrained/expert_fields.h"

#include <cstdint>
#include <string>

#include "runner/core/json.h"

namespace runner::pretrained {
namespace {

using core::Node;

std::string said(const Facts& facts, const char* role) {
  return facts.field(role) + " is " + core::to_json(*facts.find(role), -1);
}

/// Blocks that have an MLP in place of a mixture. One error for all of them.
bool check_plain_layers(const Facts& facts, core::Diagnostics& diagnostics) {
  const std::int64_t layers = facts.integer("layers");
  const Node* plain = facts.find("experts.except");
  if (plain == nullptr) return true;
  for (const Node& layer : plain->items()) {
    if (layer.is_integer() && layer.as_integer() >= 0 && layer.as_integer() < layers) continue;
    diagnostics.error(layer.location(),
                      "a layer of " + facts.field("experts.except") + " is " + core::to_json(layer, -1) +
                          ", but has to be a number from 0 to " + std::to_string(layers - 1),
                      "");
    return false;
  }
  return true;
}

}  // namespace

void check_experts(const Facts& facts, core::Diagnostics& diagnostics) {
  if (!facts.has("experts")) return;
  if (facts.integer("experts.chosen") > facts.integer("experts.count")) {
    diagnostics.error(facts.find("experts.chosen")->location(),
                      said(facts, "experts.chosen") + ", but there are " +
                          core::to_json(*facts.find("experts.count"), -1) + " experts (" +
                          facts.field("experts.count") + ")",
                      "");
  }
  if (!check_plain_layers(facts, diagnostics)) return;
  if (facts.flag("experts.balance_if") && facts.mixtures().empty()) {
    diagnostics.error(facts.find("experts.balance_if")->location(),
                      facts.field("experts.balance_if") + " is true, but no layer has a mixture of experts",
                      "set it to false; Transformers does not compute this either");
  }
}

}  // namespace runner::pretrained
