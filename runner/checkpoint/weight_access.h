#pragma once

#include <functional>
#include <string>

namespace runner::checkpoint {

/// Around the filling of a tensor of the model, whose memory may be there only then. No functions: it always is.
struct WeightAccess {
  std::function<void(const std::string&name)> open = nullptr, close = nullptr;
};

}  // namespace runner::checkpoint
