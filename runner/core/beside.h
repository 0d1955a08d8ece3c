#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <system_error>
#include <utility>

namespace runner::core {

/// Does `work` on a thread that leaves the signals to the others. `nice`: of the thread and those that it starts, when
/// others come first. The future's destructor waits. Where the system has no thread to give, the work is done at once.
template <typename Work>
auto beside(Work work, int nice = 0) {
  const auto shared = std::make_shared<Work>(std::move(work));  // std::async keeps what it could not start
  const auto begin = [&] {
    try {
      return std::async(std::launch::async, [shared, nice] {
        if (nice != 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
        return (*shared)();
      });
    } catch (const std::system_error&) {
      auto done = std::async(std::launch::deferred, [shared] { return (*shared)(); });
      done.wait();
      return done;
    }
  };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto future = begin();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return future;
}

}  // namespace runner::core
