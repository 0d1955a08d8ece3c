#include "runner/checkpoint/fit.h"

#include <map>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/files.h"
#include "runner/checkpoint/tensor_file.h"

namespace runner::checkpoint {

std::string first_mismatch(const std::string& checkpoint, const components::model::Model& model) {
  const auto saved = artifact::open_tensors(artifact::tensor_set_path(checkpoint, kModelFile));
  if (!saved) return saved.failure().message;
  struct Wanted {
    std::vector<std::int64_t> shape;
    std::string dtype;
  };
  std::map<std::string, Wanted> wanted;
  const auto want = [&wanted](const components::NamedTensor& named) {
    wanted[named.name] = {named.tensor.sizes().vec(), dtype_word(named.tensor)};
  };
  for (const auto& named : model.parameters()) want(named);
  for (const auto& named : model.buffers()) want(named);
  for (const artifact::TensorBytes& tensor : saved.value()->tensors()) {
    const auto target = wanted.find(tensor.name);
    if (target == wanted.end()) return "the model has no " + tensor.name;
    if (target->second.shape != tensor.shape) {
      return tensor.name + " is " + artifact::shape_text(tensor.shape) + " there and " +
             artifact::shape_text(target->second.shape) + " in the model";
    }
    if (target->second.dtype != tensor.dtype) {
      return tensor.name + " is " + tensor.dtype + " there and " + target->second.dtype + " in the model";
    }
  }
  const auto base = BaseWeights::of_checkpoint(checkpoint);
  for (const auto& [name, target] : wanted) {
    if (base != nullptr && base->holds(name)) continue;
    if (saved.value()->find(name) == nullptr) return "the checkpoint has no " + name;
  }
  return "";
}

}  // namespace runner::checkpoint
