#pragma once

#include <functional>
#include <memory>

namespace runner::core {

/// Work of a GPU that is recorded once and then started as a whole, with the same kernels on the same memory: a CUDA
/// graph. It belongs to the device and stream that are current where it is captured; that is not the default stream.
///
/// Threads  one thread at a time
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Calls `work`, which starts kernels on the current stream: they are recorded and do not run. Memory that `work`
  /// allocates is the graph's until it is destroyed. Throws what `work` throws, such as the device's error where it
  /// reads a value or waits; the device can be used as before then.
  virtual void capture(const std::function<void()>& work) = 0;
  /// Starts the kernels on the current stream and does not wait for them. Random numbers are those that `work` would
  /// draw now.
  virtual void replay() = 0;
};

using NewDeviceGraph = std::function<std::unique_ptr<DeviceGraph>()>;

}  // namespace runner::core
