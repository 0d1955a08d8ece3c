#pragma once

#include <vector>

#include "runner/core/tensor_fwd.h"

namespace components {

/// Norm of all elements: the root of their squares' sum for `norm_type` 2, the largest for infinity. The Euclidean norm
/// of float32 is summed up in double precision, to bits that do not depend on the number of threads; any other norm is
/// LibTorch's, in float32 at least, and its bits may.
double vector_norm(const at::Tensor& tensor, double norm_type);

/// The same of several tensors together. On a device other than the CPU it costs one wait for the device.
double total_norm(const std::vector<at::Tensor>& tensors, double norm_type);

/// The same without that wait: a float32 scalar on the device of the tensors. Not for those of the CPU.
at::Tensor total_norm_on_device(const std::vector<at::Tensor>& tensors, double norm_type);

/// Norm of what consists of parts with these norms; 0 of nothing.
double norm_of_parts(const std::vector<double>& norms, double norm_type);

}  // namespace components
