#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace runner::checkpoint {

/// Bytes of a file that become rows of a tensor.
struct FilePart {
  std::string path;
  std::int64_t offset = 0, bytes = 0;
  std::string dtype;              ///< of safetensors
  std::int64_t first_row = 0;     ///< of the tensor [rows, ...], that the first of them are
  std::int64_t rows = 0, of = 0;  ///< rows of the part, and elements in each; turned around if `transposed`
  bool transposed = false;
};

/// Around the filling of a tensor of the model, whose memory may be there only then. No functions: it always is.
struct WeightAccess {
  std::function<void(const std::string&name)> open = nullptr, close = nullptr;
  /// Calls its argument with all tensors there, or for one part of them after the other: once they are filled from
  /// others of the model.
  std::function<void(const std::function<void()>& fill)> in_parts = nullptr;
  /// Whether a tensor stays in its files, from where it is read each time that it is needed: it is not filled then, and
  /// stay() is told its parts.
  std::function<bool(const std::string& name)> stays = nullptr;
  std::function<void(const std::string& name, std::vector<FilePart> parts)> stay = nullptr;
  /// What is filled in place of a parameter; null: itself.
  std::function<const at::Tensor*(const std::string& name)> in_place_of = nullptr;
};

}  // namespace runner::checkpoint
