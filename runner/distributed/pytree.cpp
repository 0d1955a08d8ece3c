#include "runner/distributed/pytree.h"

#include <c10/core/ScalarType.h>

#include <cctype>

#include "runner/core/error.h"
#include "runner/core/text/text.h"

namespace runner::distributed {

Pytree map_tensors(const Pytree& value, const char* operation,
                   const std::function<at::Tensor(const at::Tensor&)>& change) {
  if (const at::Tensor* tensor = value.tensor()) return {change(*tensor)};
  if (const Pytree::List* list = value.list()) {
    Pytree::List changed;
    for (const Pytree& item : *list) changed.push_back(map_tensors(item, operation, change));
    return {std::move(changed)};
  }
  if (const Pytree::Mapping* mapping = value.mapping()) {
    Pytree::Mapping changed;
    for (const auto& [key, item] : *mapping) changed.emplace_back(key, map_tensors(item, operation, change));
    return {std::move(changed)};
  }
  throw core::RunError(
      std::string(operation) + " accepts tensors, lists and mappings of them, got " + core::to_json(*value.data(), -1),
      "gather_object and broadcast_object_list take plain data");
}

std::string description_of(const at::Tensor& tensor) {
  std::string text = core::lower(c10::toString(tensor.scalar_type())) + " [";
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim == 0 ? "" : ", ") + std::to_string(tensor.size(dim));
  }
  return text + "]";
}

std::string description_of(const Pytree& value) {
  if (const at::Tensor* tensor = value.tensor()) return description_of(*tensor);
  if (value.data() != nullptr) return "data";
  std::string text;
  if (const Pytree::List* list = value.list()) {
    for (const Pytree& item : *list) text += (text.empty() ? "" : ", ") + description_of(item);
    return "[" + text + "]";
  }
  for (const auto& [key, item] : *value.mapping()) {
    text += (text.empty() ? "" : ", ") + key + ": " + description_of(item);
  }
  return "{" + text + "}";
}

}  // namespace runner::distributed
