#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace tests {

/// The exit status of a process of its own that calls `work` with `bytes` of address space left; 0 when that was
/// true, 1 when not, 2 when it threw, -1 when a signal ended it.
template <typename Work>
int with_memory_left(std::int64_t bytes, const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto most = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + bytes);
    const rlimit limit = {most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      ::_exit(work() ? 0 : 1);
    } catch (...) {
      ::_exit(2);
    }
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tests
