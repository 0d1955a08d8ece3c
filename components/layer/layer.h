#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "components/block/block.h"
#include "components/part/weight.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/tensor_fwd.h"

namespace components::layer {

/// Arguments to make a layer of `sequential`: the activation before it, and its location in the recipe.
struct Inputs {
  std::string name;             ///< of the block: `layers.2`
  std::string path;             ///< name in messages: `layers[2]`
  std::string from;             ///< source of `input`: `layers[1]`, or `the data`
  TensorSpec input;             ///< what arrives
  std::string output_name;      ///< the activation to write
  std::int64_t vocab_size = 0;  ///< of the data, when its input is ids
  part::WeightMaker& weights;
  const runner::core::Node& block;
  runner::core::Diagnostics& diagnostics;
};

/// One layer: a block with one input activation and one output activation.
using Layer = block::Block;

/// What a layer is as well that calls, or may hold a layer that calls, an operation without a deterministic form on a
/// GPU.
class NondeterministicOnGpu {
 public:
  virtual ~NondeterministicOnGpu() = default;
  /// `adaptive_avg_pool2d to 2 x 2`; "" without one.
  virtual std::string nondeterministic_operation() const = 0;
};

/// That of a block that is one, else "".
std::string nondeterministic_operation(const block::Block& block);

/// Null when the layer does not fit its input; the error is in `diagnostics` at the layer's location.
std::shared_ptr<Layer> build(const runner::core::Node& block, const Inputs& inputs);

/// A layer without parameters that keeps the shape: `function` is applied to float activations of any shape.
std::shared_ptr<Layer> make_elementwise(const Inputs& inputs, at::Tensor (*function)(const at::Tensor&));

/// True when `input` holds floats; else an error: `layers[1]: relu works on float32, but the data is int64 [batch,
/// time]`.
bool expect_floats(const Inputs& inputs);

/// True when `input` is images, float32 [batch, channels, height, width] of known sizes.
bool expect_images(const Inputs& inputs);

/// True when the `wanted` channels, if the recipe gives a number, match dimension 1 of the input; else an error at
/// `key`.
bool expect_channels(const Inputs& inputs, const char* key, std::optional<std::int64_t> wanted);

/// Reports `layers[2]: <what>, but layers[1] returns float32 [batch, 32]` at a key of the layer (or at the layer).
void report_input_mismatch(const Inputs& inputs, const char* key, const std::string& what, const std::string& hint);

/// The output of a layer that keeps the shape.
TensorSpec same_shape(const Inputs& inputs);

/// How often a product over the last dimension is computed per sample: the dimensions between batch and last.
double rows_per_sample(const TensorSpec& port, std::int64_t positions);

}  // namespace components::layer
