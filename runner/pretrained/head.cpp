#include "runner/pretrained/head.h"

#include <cstddef>
#include <cstdint>

#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {

using core::Node;

std::string head_of(const Node& model) {
  const ModelType* type = model.is_mapping() ? model_type_of(model) : nullptr;
  return type != nullptr ? type->head : "";
}

core::Result<void> check_head(const Node& config, const std::string& head) {
  const ModelType& type = model_type_of_config(config);
  if (head.empty() ? !type.head.empty() : type.has_head(head)) return {};
  std::vector<std::string> heads;
  for (const HeadName& one : type.heads) heads.push_back(one.name);
  if (head.empty()) {
    return core::Failure{"the configuration of this " + type.name + " names no class with a head",
                         "set model.head to one of " + core::joined(heads), core::kExitUsage};
  }
  return core::Failure{"head is " + head + ", which " + type.name + " does not have in Transformers",
                       "it has " + core::joined(heads), core::kExitUsage};
}

std::string problem_type_of(const Node& model) {
  const ModelType* type = model.is_mapping() ? model_type_of(model) : nullptr;
  if (type == nullptr || type->head.empty() || type->is_language_model()) return "";
  if (type->head != kSequenceClassification) return kOneLabel;
  const Node* config = model.find("config");
  for (const Node* of : {&model, config}) {
    const Node* problem = of != nullptr && of->is_mapping() ? of->find("problem_type") : nullptr;
    if (problem != nullptr && problem->is_string()) return problem->as_string();
  }
  const Node* count = model.find("num_labels");
  return count != nullptr && count->is_integer() && count->as_integer() == 1 ? kRegression : kOneLabel;
}

std::vector<std::string> label_names_of(const Node& config) {
  std::vector<std::string> names;
  const Node* given = config.is_mapping() ? config.find("id2label") : nullptr;
  if (given == nullptr || !given->is_mapping()) return names;
  for (std::size_t i = 0; i < given->entries().size(); ++i) {
    const std::string number = std::to_string(i);
    const Node* name = given->find(number);
    if (name == nullptr || !name->is_string() || name->as_string() == "LABEL_" + number) return {};
    names.push_back(name->as_string());
  }
  return names;
}

}  // namespace runner::pretrained
