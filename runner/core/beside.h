#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <utility>

namespace runner::core {

/// Does `work` on a thread that leaves the signals to the others. `nice`: of the thread and those that it starts, when
/// others come first. The future's destructor waits.
template <typename Work>
auto beside(Work work, int nice = 0) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto future = std::async(std::launch::async, [work = std::move(work), nice]() mutable {
    if (nice != 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
    return work();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return future;
}

}  // namespace runner::core
