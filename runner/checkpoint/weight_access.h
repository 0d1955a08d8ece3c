#pragma once

#include <functional>
#include <string>

namespace runner::checkpoint {

/// Around the filling of a tensor of the model, whose memory may be there only then. No functions: it always is.
struct WeightAccess {
  std::function<void(const std::string&name)> open = nullptr, close = nullptr;
  /// Calls its argument with all tensors there, or for one part of them after the other: once they are filled from
  /// others of the model.
  std::function<void(const std::function<void()>& fill)> in_parts = nullptr;
};

}  // namespace runner::checkpoint
