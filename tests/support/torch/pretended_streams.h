#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdint>

// The streams of the pretended accelerator. A kernel runs when it is called, after what its stream has queued: copies
// that need not block, and waits for events of other streams.

namespace tests::accelerator {

inline constexpr auto kKind = c10::DeviceType::PrivateUse1;
inline constexpr const char* kName = "pretend";
inline constexpr int kDevices = 2;

/// Of this thread.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex device);
c10::StreamId current_stream(c10::DeviceIndex device);

/// Queues a copy on a device's current stream. Until it is made, `to` holds NaN.
void enqueue_copy(c10::DeviceIndex device, const at::Tensor& from, const at::Tensor& to);
/// Makes what is queued on a device's current stream: its next kernel comes after it.
void run_queued(c10::DeviceIndex device);

/// What LibTorch asks of devices, streams and events.
const c10::impl::DeviceGuardImplInterface& device_guard();

}  // namespace tests::accelerator
