#include "runner/checkpoint/fit.h"

#include <map>
#include <vector>

#include "components/tensors.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/files.h"

namespace runner::checkpoint {

std::string first_misfit(const std::string& checkpoint, const components::model::Model& model) {
  const auto saved = artifact::open_tensors(artifact::tensor_set_path(checkpoint, kModelFile));
  if (!saved) return saved.failure().message;
  std::map<std::string, std::vector<std::int64_t>> wanted;
  for (const auto& named : model.parameters()) wanted[named.name] = named.tensor.sizes().vec();
  for (const auto& named : model.buffers()) wanted[named.name] = named.tensor.sizes().vec();
  for (const artifact::TensorBytes& tensor : saved.value()->tensors()) {
    const auto target = wanted.find(tensor.name);
    if (target == wanted.end()) return "the model has no " + tensor.name;
    if (target->second != tensor.shape) {
      return tensor.name + " is " + artifact::shape_text(tensor.shape) + " there and " +
             artifact::shape_text(target->second) + " in the model";
    }
  }
  for (const auto& [name, shape] : wanted) {
    if (saved.value()->find(name) == nullptr) return "the checkpoint has no " + name;
  }
  return "";
}

}  // namespace runner::checkpoint
