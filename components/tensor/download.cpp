#include "components/tensor/download.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace components {

struct Download::Copies {
  explicit Copies(const c10::Device& device)
      : impl(device.type()),
        computing(impl.getStream(device)),
        aside(impl.getNewStream(device)),
        reached(device.type()),
        copied(device.type()) {}

  c10::impl::VirtualGuardImpl impl;
  c10::Stream computing, aside;
  c10::Event reached, copied;
};

Download::Download(const c10::Device& device) : copies_(device.is_cpu() ? nullptr : new Copies(device)) {}
Download::~Download() = default;
Download::Download(Download&&) noexcept = default;
Download& Download::operator=(Download&&) noexcept = default;

at::Tensor Download::operator()(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor source = tensor.detach().contiguous();
  if (source.is_cpu()) return source.is_same(tensor) || source.is_alias_of(tensor) ? source.clone() : source;
  // The copy waits for whatever still computes the tensor.
  copies_->reached.record(copies_->computing);
  copies_->reached.block(copies_->aside);
  const at::Tensor copy = at::empty(source.sizes(), at::device(at::kCPU).dtype(source.dtype()).pinned_memory(true));
  {
    const c10::StreamGuard on(copies_->aside);
    copy.copy_(source, /*non_blocking=*/true);
  }
  copies_->impl.recordDataPtrOnStream(source.storage().data_ptr(), copies_->aside);
  return copy;
}

void Download::end() {
  if (copies_ == nullptr) return;
  copies_->copied.record(copies_->aside);
  copies_->copied.block(copies_->computing);
}

void Download::wait() const {
  if (copies_ != nullptr) copies_->copied.synchronize();
}

}  // namespace components
