#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

#include "runner/core/platform/connect_nccl.h"

namespace c10d {
class Work;
}  // namespace c10d

namespace runner::distributed {

/// The GPUs of all ranks, connected over NCCL. LibTorch's own watchdog is off: who waits here sees the error.
class NcclBackend {
 public:
  /// Blocks until all ranks are connected. Throws LibTorch's error, or that it timed out.
  NcclBackend(core::ConnectNccl connect, const c10::intrusive_ptr<c10d::Store>& store, const core::NcclRank& rank);
  /// Waits a moment for the other ranks to have what they were sent.
  ~NcclBackend();
  NcclBackend(const NcclBackend&) = delete;
  NcclBackend& operator=(const NcclBackend&) = delete;

  c10d::Backend& operator*() const { return *backend_; }

  /// Ends what the GPU still does for a collective that failed: waiting for a rank that is lost, it would not end.
  void abandon();

 private:
  void end(void (c10d::Backend::*how)());

  c10::intrusive_ptr<c10d::Backend> backend_;
};

/// Blocks the CPU until the GPU has finished a collective; what this thread computes next comes after it. Throws the
/// error of the collective, or that it timed out. LibTorch's wait() would return before the GPU is done, and an error
/// or a rank that is lost would show in a later value, or never.
void wait_on_cpu(c10d::Work& work, std::chrono::milliseconds timeout);

/// An error of NCCL in one line, with NCCL's own last words and without the line of LibTorch that saw it. "" for
/// another text.
std::string nccl_error(const std::string& text);

}  // namespace runner::distributed
