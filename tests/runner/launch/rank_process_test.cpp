#include "runner/launch/rank_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <functional>
#include <string>

#include "runner/core/error.h"
#include "tests/support/skip.h"

using runner::launch::RankProcess;

namespace {

constexpr int kPassed = 0, kRefusedWrongly = 1, kLeaked = 2, kHadOne = 3, kNotToBeHad = 77;

/// The exit status of `work` in a process of its own, whose limits are its own too.
int alone(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int open_descriptors() {
  int count = 0;
  for (int descriptor = 0; descriptor < 256; ++descriptor) count += fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

/// Starts one that cannot be started.
int refused(const std::string& why) {
  const int before = open_descriptors();
  RankProcess::Options options;
  options.output = RankProcess::Output::kKept;
  try {
    RankProcess(
        "rank 1", [] { return 0; }, options);
    return kHadOne;
  } catch (const runner::core::RunError& error) {
    if (error.what() != "cannot start rank 1: " + why) return kRefusedWrongly;
  }
  return open_descriptors() == before ? kPassed : kLeaked;
}

}  // namespace

TEST_CASE("a process that the machine does not have is refused, and nothing of it is left", "[launch][nproc]") {
  SECTION("no process") {
    const int status = alone([] {
      // The limit is one of users, and none of root.
      if (geteuid() == 0 && setuid(65534) != 0) return kNotToBeHad;
      const rlimit none = {0, 0};
      setrlimit(RLIMIT_NPROC, &none);
      const int what = refused("Resource temporarily unavailable");
      return what == kHadOne ? kNotToBeHad : what;
    });
    if (status == kNotToBeHad) tests::skip("the limit of processes holds for no user (RLIMIT_NPROC)");
    CHECK(status == kPassed);
  }
  SECTION("no descriptor for what it prints") {
    CHECK(alone([] {
            const int next = dup(STDERR_FILENO);
            close(next);
            const rlimit few = {static_cast<rlim_t>(next + 3), static_cast<rlim_t>(next + 3)};  // one pipe and a half
            setrlimit(RLIMIT_NOFILE, &few);
            return refused("Too many open files");
          }) == kPassed);
  }
}
