#include "runner/train/data/label_kind.h"

#include "runner/registry/config_parse.h"
#include "runner/registry/registry.h"

namespace runner::train {
namespace {

using components::data::LabelKind;
using core::Node;

std::string text_of(const Node& block, const char* key) {
  const Node* value = block.is_mapping() ? block.find(key) : nullptr;
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

}  // namespace

LabelKind label_kind(const resolve::Recipe& recipe) {
  const registry::Fragment* loss = registry::Registry::builtin().find("loss", registry::type_of(recipe.loss));
  if (loss != nullptr && loss->records == "labelled") return LabelKind::kDesirable;
  const std::string head = text_of(recipe.model, "head"), problem = text_of(recipe.model, "problem_type");
  if (head == "token_classification") return LabelKind::kTags;
  if (head != "sequence_classification") return LabelKind::kNone;
  return problem == "regression"                   ? LabelKind::kValues
         : problem == "multi_label_classification" ? LabelKind::kClasses
                                                   : LabelKind::kClass;
}

std::vector<std::string> label_names(const resolve::Recipe& recipe) {
  std::vector<std::string> names;
  const Node* config = recipe.model.is_mapping() ? recipe.model.find("config") : nullptr;
  const Node* given = config != nullptr && config->is_mapping() ? config->find("id2label") : nullptr;
  if (given == nullptr || !given->is_mapping()) return names;
  for (std::size_t i = 0; i < given->entries().size(); ++i) {
    const Node* name = given->find(std::to_string(i));
    // What Transformers writes where they have no names.
    if (name == nullptr || !name->is_string() || name->as_string() == "LABEL_" + std::to_string(i)) return {};
    names.push_back(name->as_string());
  }
  return names;
}

}  // namespace runner::train
