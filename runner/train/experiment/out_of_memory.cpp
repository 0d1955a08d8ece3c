#include "runner/train/experiment/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

constexpr std::string_view kCudaError = "CUDA error";
constexpr std::array<std::string_view, 8> kTexts = {
    " out of memory.",                             // CUDA, HIP, XPU
    "CUDA error: out of memory",                   // the driver, for what LibTorch does not allocate itself
    "MPS backend out of memory",                   // and what MPS makes of it
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",    // what cuDNN says when its work space does not fit
    "DefaultCPUAllocator: can't allocate memory",  // c10, refused by the system
    "DefaultCPUAllocator: not enough memory",      // the same on other systems
    "MODULE:PT_DEVMEM Allocation failed",          // Gaudi
    "out_of_memory",                               // oneDNN's status
};

/// One rank's error, known on all ranks.
class OutOfMemory final : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace

bool is_out_of_memory(std::string_view text) {
  return std::any_of(kTexts.begin(), kTexts.end(),
                     [text](std::string_view known) { return text.find(known) != std::string_view::npos; });
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // A RunError is about files and records, whatever its text says.
  if (dynamic_cast<const core::RunError*>(&error) != nullptr) return false;
  if (dynamic_cast<const std::runtime_error*>(&error) == nullptr &&
      dynamic_cast<const c10::Error*>(&error) == nullptr) {
    return false;
  }
  return is_out_of_memory(plain_text(error));
}

std::string plain_text(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error); torch != nullptr) {
    const std::string text = torch->what_without_backtrace();
    return text.starts_with(kCudaError) ? text.substr(0, text.find('\n')) : text;  // advice for developers follows
  }
  if (!is_shared(error) && dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "the system has no more memory for this process";
  return error.what();
}

core::RunError as_run_error(const std::exception& error) {
  const std::string text = plain_text(error);
  if (is_out_of_memory(error)) {
    return core::RunError("out of memory: " + text,
                          "use a smaller model, smaller batches, a larger training.max_memory, or more memory");
  }
  if (text.starts_with(kCudaError)) {
    return core::RunError(text,
                          "look at `nvidia-smi` and the kernel's log; `roux resume` continues a run at its last "
                          "checkpoint, and CUDA_LAUNCH_BLOCKING=1 names the operation that fails");
  }
  const bool torch = dynamic_cast<const c10::Error*>(&error) != nullptr;
  return core::RunError((torch ? "LibTorch: " : "") + text);
}

void share_out_of_memory(distributed::ProcessGroup& ranks, const std::exception_ptr& mine) {
  std::string text;
  try {
    if (mine) std::rethrow_exception(mine);
  } catch (const std::exception& error) {
    text = plain_text(error);
  }
  const std::vector<std::string> all = ranks.all_gather(text, "memory that ran out");
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) throw OutOfMemory("rank " + std::to_string(rank) + ": " + all[rank]);
  }
}

bool is_shared(const std::exception& error) { return dynamic_cast<const OutOfMemory*>(&error) != nullptr; }

MicroBatchPolicy::MicroBatchPolicy(std::string_view text) {
  constexpr std::string_view kMinus = "minus:";
  if (text == "halve") kind_ = Kind::kHalve;
  if (text == "shrink") kind_ = Kind::kShrink;
  if (!text.starts_with(kMinus)) return;
  kind_ = Kind::kMinus;
  minus_ = std::stoll(std::string(text.substr(kMinus.size())));
}

std::int64_t MicroBatchPolicy::next(std::int64_t size) const {
  switch (kind_) {
    case Kind::kNever: return 0;
    case Kind::kHalve: return size / 2;
    case Kind::kShrink: return static_cast<std::int64_t>(static_cast<double>(size) * 0.9);
    case Kind::kMinus: return std::max<std::int64_t>(0, size - minus_);
  }
  return 0;
}

}  // namespace runner::train
