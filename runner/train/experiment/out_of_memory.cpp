#include "runner/train/experiment/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

constexpr std::array<std::string_view, 7> kTexts = {
    " out of memory.",                             // CUDA, HIP, XPU
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
    return torch->what_without_backtrace();
  }
  if (!is_shared(error) && dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "the system has no more memory for this process";
  return error.what();
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
