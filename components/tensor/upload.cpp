#include "components/tensor/upload.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "components/tensor/row_notes.h"
#include "components/tensor/tensors.h"

namespace components {

TensorMap Uploader::operator()(const TensorMap& batch) const {
  if (device_.is_cpu()) return batch;
  const bool pins = options_.pin_memory;
  TensorMap noted = batch, sources, kept;
  note_rows(noted, options_.one_shape);
  for (const NamedTensor& item : noted.items()) {
    if (item.name == kLongestDocument) {
      kept.set(item.name, item.tensor);
      continue;
    }
    const bool is_there = item.tensor.device() == device_;
    sources.set(item.name, pins && !is_there ? item.tensor.pin_memory() : item.tensor);
  }
  TensorMap moved;
  if (pins && options_.non_blocking) {
    moved = copy_aside(sources);
  } else {
    for (const NamedTensor& item : sources.items()) moved.set(item.name, item.tensor.to(device_));
  }
  for (const NamedTensor& item : kept.items()) moved.set(item.name, item.tensor);
  return moved;
}

TensorMap Uploader::copy_aside(const TensorMap& pinned) const {
  const c10::impl::VirtualGuardImpl device(device_.type());
  if (!stream_) stream_ = device.getNewStream(device_);
  const c10::Stream computing = device.getStream(device_);
  c10::Event copied(device_.type());
  TensorMap moved;
  {
    const c10::StreamGuard on(*stream_);
    for (const NamedTensor& item : pinned.items()) {
      moved.set(item.name, item.tensor.to(device_, item.tensor.scalar_type(), /*non_blocking=*/true));
    }
    copied.record(*stream_);
  }
  copied.block(computing);
  for (const NamedTensor& item : moved.items()) {  // or their memory could be reused while `computing` reads it
    device.recordDataPtrOnStream(item.tensor.storage().data_ptr(), computing);
  }
  return moved;
}

}  // namespace components
