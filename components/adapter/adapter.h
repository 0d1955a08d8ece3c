#pragma once

#include <memory>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/part/weight.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components::adapter {

/// One layer that an adapter has added `scale * dropout(x) A^T B^T` to: a linear layer of the model, or one of several
/// that are joined in one matrix. A [r, in] and B [out, r] are the model's parameters `NAME.lora_A.weight` and
/// `NAME.lora_B.weight`; DoRA has the magnitude [out], `NAME.lora_magnitude_vector`, too.
struct AdaptedLayer {
  std::string name;    ///< `h.0.attn_qkv.q_proj`
  std::string module;  ///< as Transformers and PEFT name it: `model.layers.0.self_attn.q_proj`
  double scale = 1.0;
};

/// Small trained additions to a frozen model. Their tensors are parameters of the blocks that they change.
class Adapter {
 public:
  virtual ~Adapter() = default;
  /// What it has changed, in the order of the model's layers.
  virtual const std::vector<AdaptedLayer>& layers() const = 0;
  /// Sets what begins from the model's weights, when these and those of the adapter are in place. Leaves out layers
  /// whose tensors have no memory.
  virtual void begin() const = 0;
};

/// Arguments to add an adapter to a model, whose parameters it freezes.
struct Inputs {
  const model::Model& model;
  const runner::core::Node& model_block;   ///< the model's block in the recipe, for Transformers' names of its layers
  part::WeightMaker& weights;              ///< that of the model: an adapter is drawn after it
  const runner::core::Node& block;         ///< the adapter's block, for locations in messages
  runner::core::Diagnostics& diagnostics;  ///< names of no layer, a rank that is too large
};

/// Null when `diagnostics` got an error.
/// Defined by the generated table: reads `type:`, parses the Config and calls that component's make().
std::shared_ptr<Adapter> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::adapter
