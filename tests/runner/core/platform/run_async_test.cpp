#include "runner/core/platform/run_async.h"

#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <system_error>
#include <thread>

#include "runner/core/platform/machine.h"
#include "runner/core/platform/parallel.h"
#include "tests/support/disk/short_memory.h"

namespace runner::core {
namespace {

constexpr std::int64_t kBytesLeft = 64 << 20;
constexpr std::size_t kStackBytes = 1 << 30;

/// What `work` answers where no thread can be started, because its stack is larger than what may be mapped.
template <typename Work>
bool holds_without_threads(const Work& work) {
  return tests::with_memory_left(kBytesLeft, [&work] {
           pthread_attr_t attributes;
           pthread_attr_init(&attributes);
           pthread_attr_setstacksize(&attributes, kStackBytes);
           pthread_setattr_default_np(&attributes);
           try {
             std::thread([] {}).join();
             return false;
           } catch (const std::system_error&) {
             return work();
           }
         }) == 0;
}

}  // namespace

TEST_CASE("work that no thread can be had for is done all the same", "[core][beside][memory_limit]") {
  CHECK(holds_without_threads([] {
    auto result = run_async([text = std::string("done")] { return text; }, 5);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return result.get() == "done" && sigismember(&blocked, SIGTERM) == 0;
  }));
  CHECK(holds_without_threads([] { return !try_run_async([] { return 1; }); }));  // but not what has no end
  CHECK(holds_without_threads([] {
    std::atomic<int> sum{0};
    in_parallel(10, 4, [&sum](std::size_t i) { sum += static_cast<int>(i); });
    return sum == 45;
  }));
}

TEST_CASE("free memory is no more than what is left of the address space", "[core][machine][memory_limit]") {
  CHECK(tests::with_memory_left(kBytesLeft, [] { return free_memory() <= kBytesLeft; }) == 0);
}

}  // namespace runner::core
