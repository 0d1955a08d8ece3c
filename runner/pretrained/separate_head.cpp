#include "runner/pretrained/separate_head.h"

#include <algorithm>

#include "runner/artifact/tensor_set.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {

using core::Node;

void settle_separate_head(const std::string& folder, Node& config) {
  const Facts facts(config);
  // A model that scales what the decoder gives was trained with one weight, which older files hold twice.
  if (!facts.has("tied_unless") || !facts.flag("tied") || facts.flag("tied_scaled")) return;
  const auto path = artifact::find_tensor_set(folder);
  if (!path) return;  // what begins from the folder says so
  const auto reader = artifact::open_tensors(path.value());
  if (!reader) return;
  const std::string head = facts.text("tied_unless");
  const auto& tensors = reader.value()->tensors();
  const bool is_there =
      std::any_of(tensors.begin(), tensors.end(), [&head](const auto& tensor) { return tensor.name == head; });
  if (!is_there) return;
  Node tied = Node::boolean(false, config.location());
  tied.add_history({"a weight " + head + " in " + path.value(), core::Origin::kSettled});
  config.set(facts.field("tied"), std::move(tied));
}

}  // namespace runner::pretrained
