#include "components/tensor/judged.h"

#include "runner/core/text/text.h"

namespace components {

const TensorSpec* Judged::find(std::string_view name) const {
  const TensorSpec* output = find_spec(outputs, name);
  return output != nullptr ? output : data.find(name);
}

const TensorSpec* Judged::need(std::string_view name) const {
  if (const TensorSpec* spec = find(name)) return spec;
  const runner::core::Node* type = block.find("type");
  const std::string reader = type != nullptr ? type->scalar_text() : "this";
  diagnostics.error(block.location(),
                    reader + " reads \"" + std::string(name) + "\", which neither the model nor the data give",
                    "the model gives " + names_of(outputs) + ", the data " + names_of(data.tensors) +
                        ": use another model or data set, or what reads these");
  return nullptr;
}

bool Judged::have(const std::vector<std::string>& names) const {
  bool all = true;
  for (const std::string& name : names) all = need(name) != nullptr && all;
  return all;
}

}  // namespace components
