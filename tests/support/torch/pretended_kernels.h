#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace tests::accelerator {

/// A kernel runs now. Throws the error of fail_after() when it is due.
void count_kernel();
/// Puts the generators that a device's kernels draw from back to their states of now.
std::function<void()> keep_generators(c10::DeviceIndex device);

}  // namespace tests::accelerator
