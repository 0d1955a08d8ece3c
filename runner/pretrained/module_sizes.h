#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {

/// A tensor by its name and shape.
struct TensorShape {
  std::string name;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
};

/// Bytes of a model in float32, and of its largest layer: a module that holds tensors and no modules, or one that is
/// not divided, such as a block.
struct ModuleSizes {
  std::int64_t total = 0, largest = 0;
  std::int64_t parameters = 0;             ///< numbers in its weights
  std::vector<std::string> largest_names;  ///< of all layers of that size, in the model's order
};

/// Of the class of Transformers whose tensors roux has under these names (a checked configuration, `type` with its
/// head), its buffers included; tied weights count once.
///
/// Source  accelerate.utils.calculate_maximum_sizes 1.15, Transformers 5.24
ModuleSizes module_sizes(const ModelType& type, const core::Node& config, const std::vector<TensorShape>& tensors);

/// Of a class that roux does not know, by the names in its files: what has the same first number in its name is a
/// block.
ModuleSizes module_sizes(const std::vector<TensorShape>& tensors);

/// What a training with Adam takes in bytes, its step at most.
struct AdamSizes {
  std::int64_t model = 0, gradients = 0, optimizer = 0, step = 0;

  std::int64_t most() const;
};

/// Largest layer and total in a type, as `accelerate estimate-memory` has them: all numbers have the bits of the type.
/// Nothing of Adam in types that are not trained in.
struct TypeSizes {
  double largest = 0, total = 0;
  std::optional<AdamSizes> adam;
};

/// The types that it has words for, and bfloat16.
inline constexpr const char* kSizedTypes[] = {"float32", "bfloat16", "float16", "int8", "int4"};

/// `type`: one of these.
///
/// Source  accelerate.commands.estimate 1.15, but that bfloat16 halves the sizes as float16 does
TypeSizes sizes_in(std::string_view type, const ModuleSizes& sizes);

}  // namespace runner::pretrained
