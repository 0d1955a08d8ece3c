#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace runner::core {

/// Calls `work(i)` for 0 <= i < count on up to `threads_max` threads, this one among them, in order of i. For work that
/// waits for the disk as much as it computes; use LibTorch's threads for pure computation. Blocks until all have ended.
/// After an exception no further work begins, and the first one is rethrown.
template <typename Work>
void in_parallel(std::size_t count, std::size_t threads_max, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto lane = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < count && i < threads_max; ++i) others.emplace_back(lane);
  } catch (const std::system_error&) {
    // No memory for another thread: the existing ones do the work.
  }
  lane();
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace runner::core
