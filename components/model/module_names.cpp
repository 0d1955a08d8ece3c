#include <string>
#include <vector>

#include "components/model/model.h"
#include "runner/pretrained/model_type.h"

namespace components::model {

using runner::pretrained::ModelType;
using runner::pretrained::WeightRule;

std::vector<std::vector<std::string>> names_of_parts(const runner::core::Node& block, const std::string& tensor) {
  const ModelType* type = runner::pretrained::model_type_of(block);
  const WeightRule* rule = type != nullptr ? type->rule_of(tensor) : nullptr;
  if (rule == nullptr) return {{tensor}};
  const auto number = runner::pretrained::number_in(rule->name, tensor);
  std::vector<std::vector<std::string>> parts;
  for (const std::string& part : rule->parts(number.value_or(-1), 1)) {
    const bool is_based = part.starts_with(type->prefix);
    parts.push_back({tensor, part, is_based ? part.substr(type->prefix.size()) : type->prefix + part});
  }
  return parts;
}

}  // namespace components::model
