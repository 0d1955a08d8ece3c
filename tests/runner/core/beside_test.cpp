#include "runner/core/beside.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runner/core/machine.h"
#include "runner/core/parallel.h"

namespace runner::core {
namespace {

constexpr int kThreadStarted = 2;

/// From now on no thread can be started: its stack would be larger than what may be mapped.
void forbid_threads() {
  constexpr rlim_t kLimit = rlim_t{8} << 30;
  const rlimit limit = {kLimit, kLimit};
  ::setrlimit(RLIMIT_AS, &limit);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{2} * kLimit);
  pthread_setattr_default_np(&attributes);
}

/// The exit status of `work` in a process where no thread can be started.
template <typename Work>
int without_threads(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    forbid_threads();
    int status = kThreadStarted;
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      status = work() ? 0 : 1;
    }
    ::_exit(status);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("work that no thread can be had for is done all the same", "[core][beside]") {
  CHECK(without_threads([] {
          auto result = beside([text = std::string("done")] { return text; }, 5);
          sigset_t blocked;
          pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
          return result.get() == "done" && sigismember(&blocked, SIGTERM) == 0;
        }) == 0);
  CHECK(without_threads([] {
          std::atomic<int> sum{0};
          in_parallel(10, 4, [&sum](std::size_t i) { sum += static_cast<int>(i); });
          return sum == 45;
        }) == 0);
}

TEST_CASE("free memory is no more than what is left of the address space", "[core][machine]") {
  CHECK(without_threads([] { return free_memory() > 0 && free_memory() < memory_limit(); }) == 0);
}

}  // namespace runner::core
