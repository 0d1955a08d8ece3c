#pragma once

#include <optional>
#include <string>

#include "tests/support/golden.h"

namespace tests {

/// The recipe block for a class of torch.optim.lr_scheduler and its arguments; nothing when there is no such schedule
/// here. Its factors are of `optimizer_lr`; those of OneCycleLR are of its max_lr.
std::optional<golden::Json> torch_schedule(const std::string& name, const golden::Json& args, double optimizer_lr);

}  // namespace tests
