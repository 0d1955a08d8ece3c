#pragma once

#include <optional>
#include <string_view>

#include "components/kernels/transformer.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

enum class Activation { kGeluTanh, kGelu, kQuickGelu, kSilu, kRelu, kRelu2, kTanh, kSigmoid };

/// By the names that Transformers' configurations use: `gelu_new`, `silu`, ...; nothing for another name.
std::optional<Activation> activation_named(std::string_view name);
/// Those names, for messages: `gelu, gelu_new, ...`.
const char* activation_names();
/// Transformers' usual name for it.
const char* name_of(Activation activation);

at::Tensor activate(Activation activation, const at::Tensor& x);

/// What the kernels call it; nothing where they do not have it.
std::optional<kernels::Activation> of_kernels(Activation activation);

}  // namespace components::part
