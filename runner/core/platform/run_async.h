#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace runner::core {

/// Runs `work` on a thread that blocks signals. `nice`: priority of the thread and those it starts. The future's
/// destructor waits. Nothing when the system has no more threads; for work that may be omitted then.
template <typename Work>
auto try_run_async(const std::shared_ptr<Work>& work, int nice = 0) -> std::optional<std::future<decltype((*work)())>> {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<std::future<decltype((*work)())>> future;
  try {
    future = std::async(std::launch::async, [work, nice] {
      if (nice != 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
      return (*work)();
    });
  } catch (const std::system_error&) {  // there is none
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return future;
}

template <typename Work>
auto try_run_async(Work work, int nice = 0) {
  return try_run_async(std::make_shared<Work>(std::move(work)), nice);  // std::async keeps what it could not start
}

/// The same, but without a thread the work is done at once.
template <typename Work>
auto run_async(Work work, int nice = 0) {
  const auto shared = std::make_shared<Work>(std::move(work));
  if (auto future = try_run_async(shared, nice)) return *std::move(future);
  auto done = std::async(std::launch::deferred, [shared] { return (*shared)(); });
  done.wait();
  return done;
}

}  // namespace runner::core
