#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
}

namespace runner::train {

struct ClipOptions {
  std::optional<double> norm;   ///< upper limit of the total norm
  std::optional<double> value;  ///< limit of each entry; applied first
  double norm_type = 2.0;       ///< infinity takes the largest entry
};

/// The gradients of the parameters that have one, in parameter order.
std::vector<at::Tensor> gradients_of(const std::vector<components::NamedTensor>& parameters);

/// The same by device, in the order in which these are met: a model may be on several.
std::vector<std::vector<at::Tensor>> by_device(const std::vector<at::Tensor>& tensors);

/// Total norm of all gradients. Parameters without one do not count.
///
/// Source  torch.nn.utils.get_total_norm
double total_gradient_norm(const std::vector<components::NamedTensor>& parameters, double norm_type);
/// The same, left on the gradients' device as a float32 scalar; undefined without a gradient. Not for the CPU.
at::Tensor gradient_norm_on_device(const std::vector<components::NamedTensor>& parameters, double norm_type);

/// Clips in place and returns the total norm before clipping by norm (nothing when only values are clipped). `total`
/// measures the norm after clipping by value, instead of total_gradient_norm().
///
/// Source  torch.nn.utils.clip_grad_norm_ (coefficient max_norm / (norm + 1e-6), at most 1), clip_grad_value_
std::optional<double> clip_gradients(const std::vector<components::NamedTensor>& parameters, const ClipOptions& options,
                                     const std::function<double()>& total = {});

/// The same on the gradients' device, other than the CPU, without a wait for it. The norm is a float32 scalar there,
/// the factor clip_coefficient()'s to the last bit; undefined when only values are clipped, or there is no gradient.
at::Tensor clip_gradients_on_device(const std::vector<components::NamedTensor>& parameters, const ClipOptions& options);

/// Factor by which clipping multiplies each gradient; 1 without clipping.
double clip_coefficient(double norm, double norm_max);

/// Sets all gradients to none, as zero_grad(set_to_none=True): the next backward pass needs no copy.
void drop_gradients(const std::vector<components::NamedTensor>& parameters);

/// The first of "gradient of NAME" / "parameter NAME" that holds NaN or infinity; "" when all are finite.
std::string first_bad_gradient(const std::vector<components::NamedTensor>& parameters);
std::string first_bad_parameter(const std::vector<components::NamedTensor>& parameters);

}  // namespace runner::train
