#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace runner::distributed {

/// `float [2, 3]`; defined beside that of trees.
std::string description_of(const at::Tensor& tensor);

}  // namespace runner::distributed
