#include "components/tensor/device.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "components/tensor/meta_pass.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components {

c10::Device named_device(const std::string& name, int default_index) {
  try {
    c10::Device device(name);
    if (device.is_cuda() && c10::is_privateuse1_backend_registered()) {
      device = c10::Device(c10::kPrivateUse1, device.index());
    }
    if (!device.has_index() && !device.is_cpu()) device.set_index(static_cast<c10::DeviceIndex>(default_index));
    return device;
  } catch (const c10::Error&) {
    throw runner::core::RunError("there is no device called \"" + name + "\"");
  }
}

std::string to_text(const c10::Device& device) { return device.str(); }

void use_device(const c10::Device& device) {
  if (device.is_cpu()) return;
  const std::string kind = c10::DeviceTypeName(device.type(), /*lower_case=*/true);
  if (!c10::impl::hasDeviceGuardImpl(device.type())) {
    throw runner::core::RunError("this process has no support for " + kind);
  }
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (device.index() >= guard.deviceCount()) {
    throw runner::core::RunError("device is " + to_text(device) + ", but this process sees " +
                                 std::to_string(guard.deviceCount()) + " of " + kind);
  }
  guard.setDevice(device);
}

void use_own_stream(const c10::Device& device, bool own) {
  if (device.is_cpu()) return;
  synchronize(device);
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.exchangeStream(own ? guard.getStreamFromGlobalPool(device) : guard.getDefaultStream(device));
}

bool supports_own_kernels(const at::Tensor& tensor) {
  return tensor.is_cpu() || (tensor.is_meta() && !MetaPass::is_for_gpu());
}

void move_to(const std::vector<NamedTensor>& tensors, const c10::Device& device) {
  if (device.is_cpu()) return;
  const at::NoGradGuard no_grad;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.device() != device) named.tensor.set_data(named.tensor.to(device));
  }
}

void synchronize(const c10::Device& device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

void empty_cache(const c10::Device& device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace components
