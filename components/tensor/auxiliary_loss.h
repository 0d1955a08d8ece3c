#pragma once

namespace components {

/// [2] float32, of a model that adds to the loss: what is added to its mean, and the same without its factor, for logs.
inline constexpr const char* kAuxiliaryLoss = "auxiliary_loss";

}  // namespace components
