#include "runner/resolve/model_head.h"

#include <cstddef>
#include <cstdint>

#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"

namespace runner::resolve {

using core::Node;

std::string head_of(const Node& model) {
  const pretrained::ModelType* type = model.is_mapping() ? pretrained::model_type_of(model) : nullptr;
  return type != nullptr ? type->head : "";
}

std::string label_head_of(const Node& model) {
  const pretrained::ModelType* type = model.is_mapping() ? pretrained::model_type_of(model) : nullptr;
  return type == nullptr || !type->tells_labels() ? "" : type->head;
}

DecoderStart decoder_start_of(const Node& model) {
  const pretrained::ModelType* type = model.is_mapping() ? pretrained::model_type_of(model) : nullptr;
  const Node* config = type != nullptr ? model.find("config") : nullptr;
  if (config == nullptr || !config->is_mapping()) return {};
  const pretrained::Facts facts(*type, *config);
  const auto id = [&facts](const char* role) { return static_cast<std::int32_t>(facts.integer(role, 0)); };
  return {id("decoder_start"), id("decoder_padding")};
}

std::string problem_type_of(const Node& model) {
  const std::string head = label_head_of(model);
  if (head.empty()) return "";
  if (head != pretrained::kSequenceClassification) return pretrained::kOneLabel;
  const Node* config = model.find("config");
  for (const Node* of : {&model, config}) {
    const Node* problem = of != nullptr && of->is_mapping() ? of->find("problem_type") : nullptr;
    if (problem != nullptr && problem->is_string()) return problem->as_string();
  }
  const Node* count = model.find("num_labels");
  return count != nullptr && count->is_integer() && count->as_integer() == 1 ? pretrained::kRegression
                                                                             : pretrained::kOneLabel;
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

std::int64_t label_count_of(const Node& model) {
  const std::string head = label_head_of(model);
  const Node* config = head.empty() ? nullptr : model.find("config");
  const Node* count = model.find("num_labels");
  if (config == nullptr || !config->is_mapping() || (count != nullptr && !count->is_null())) return 0;
  const pretrained::ModelType& type = pretrained::model_type_of_config(*config);
  return type.head == head ? pretrained::Facts(type, *config).stated_labels() : 0;
}

}  // namespace runner::resolve
