#include "components/tensor/download.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <string>
#include <utility>

#include "runner/core/log.h"

namespace components {
namespace {

void warn_once(const c10::Error& error) {
  static std::once_flag told;
  std::call_once(told, [&error] {
    const std::string text = error.what_without_backtrace();
    runner::core::log_warning("no page-locked memory for the copies of a checkpoint, so training waits for them: " +
                              text.substr(0, text.find('\n')));
  });
}

}  // namespace

struct Download::Copies {
  explicit Copies(const c10::Device& device)
      : stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device)), copied(device.type()) {}

  /// Page-locked if there is such memory.
  at::Tensor empty_like(const at::Tensor& source) {
    const auto options = at::device(at::kCPU).dtype(source.dtype());
    if (page_locked) {
      try {
        return at::empty(source.sizes(), options.pinned_memory(true));
      } catch (const c10::Error& error) {  // a device that has failed says so again at the copy
        page_locked = false;
        warn_once(error);
      }
    }
    return at::empty(source.sizes(), options);
  }

  c10::Stream stream;
  c10::Event copied;
  bool page_locked = true;
};

Download::Download(const c10::Device& device) : copies_(device.is_cpu() ? nullptr : new Copies(device)) {}
Download::~Download() = default;
Download::Download(Download&&) noexcept = default;
Download& Download::operator=(Download&&) noexcept = default;

at::Tensor Download::operator()(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor source = tensor.detach().contiguous();
  if (source.is_cpu()) return source.is_same(tensor) || source.is_alias_of(tensor) ? source.clone() : source;
  const at::Tensor copy = copies_->empty_like(source);
  copy.copy_(source, /*non_blocking=*/copies_->page_locked);
  return copy;
}

void Download::end() {
  if (copies_ != nullptr) copies_->copied.record(copies_->stream);
}

void Download::wait() const {
  if (copies_ != nullptr) copies_->copied.synchronize();
}

}  // namespace components
