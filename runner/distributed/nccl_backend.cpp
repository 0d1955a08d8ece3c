#include "runner/distributed/nccl_backend.h"

#include <exception>
#include <future>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "runner/core/platform/run_async.h"

namespace runner::distributed {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEndPatience{3000};
constexpr std::chrono::microseconds kPollInterval{20};
constexpr const char* kTimedOut = "timed out";  // as LibTorch says it

}  // namespace

// Twice the timeout: where the store has the timeout too, it knows better what is missing.
NcclBackend::NcclBackend(core::ConnectNccl connect, const c10::intrusive_ptr<c10d::Store>& store,
                         const core::NcclRank& rank) {
  auto connecting = core::run_async([=] { return c10::intrusive_ptr<c10d::Backend>::reclaim(connect(*store, rank)); });
  if (connecting.wait_for(2 * rank.timeout) == std::future_status::timeout) {
    new auto(std::move(connecting));  // its thread may wait for ever; the process is about to exit
    throw std::runtime_error(kTimedOut);
  }
  backend_ = connecting.get();
}

NcclBackend::~NcclBackend() { end(&c10d::Backend::shutdown); }

void NcclBackend::abandon() { end(&c10d::Backend::abort); }

/// Both ways to end may wait for other ranks, which may be gone. What does not end is leaked.
void NcclBackend::end(void (c10d::Backend::*how)()) {
  if (!backend_) return;
  c10d::Backend* leaked = backend_.release();
  auto ending = core::try_run_async([leaked, how] {
    try {
      (leaked->*how)();
      static_cast<void>(c10::intrusive_ptr<c10d::Backend>::reclaim(leaked));
    } catch (const std::exception&) {  // the group has ended without a failure, or with one that is being reported
    }
  });
  if (ending && ending->wait_for(kEndPatience) == std::future_status::timeout) new auto(std::move(ending));
}

void wait_on_cpu(c10d::Work& work, milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!work.isCompleted()) {
    if (std::chrono::steady_clock::now() >= deadline) throw std::runtime_error(kTimedOut);
    std::this_thread::sleep_for(kPollInterval);
  }
  if (const std::exception_ptr error = work.exception()) std::rethrow_exception(error);
  work.wait();
}

std::string nccl_error(const std::string& text) {
  constexpr std::string_view kBegin = "NCCL error", kLast = "Last error:\n";
  if (!text.starts_with(kBegin)) return "";
  const auto line_at = [&text](std::size_t begin) { return text.substr(begin, text.find('\n', begin) - begin); };
  std::string first = line_at(0);
  // "NCCL error in: FILE:LINE, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9"
  if (const auto comma = first.find(", "); first.starts_with("NCCL error in: ") && comma != std::string::npos) {
    first = std::string(kBegin) + ": " + first.substr(comma + 2);
  }
  const auto last = text.find(kLast);
  const std::string words = last == std::string::npos ? "" : line_at(last + kLast.size());
  return words.empty() ? first : first + ": " + words;
}

}  // namespace runner::distributed
