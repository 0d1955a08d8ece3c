#pragma once

#include <c10/core/Device.h>

#include "runner/resolve/load.h"

namespace runner::train {

/// The device that a recipe names. `auto` is settled before a training; where it is not, as in `plan`, it is the CPU.
c10::Device device_of(const resolve::Recipe& recipe);

/// What LibTorch decides once for a process: makes the recipe's device the current one, and sets what its kernels may
/// do. RunError when this process does not have that device.
void prepare_device(const resolve::Recipe& recipe);

}  // namespace runner::train
