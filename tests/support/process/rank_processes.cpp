#include "tests/support/process/rank_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "runner/core/error.h"
#include "runner/core/platform/listening_socket.h"

namespace tests {

std::vector<pid_t> wait_for_ranks(Process& process, std::size_t& seen) {
  const std::string before = " as processes ";
  if (!process.wait_for(before) || !process.wait_for("\n")) throw std::runtime_error("no ranks: " + process.output());
  const std::string& output = process.output();
  const std::size_t begin = output.find(before, seen) + before.size();
  seen = begin;
  std::istringstream list(output.substr(begin, output.find('\n', begin) - begin));
  std::vector<pid_t> pids;
  for (std::string pid; std::getline(list, pid, ',');) pids.push_back(std::stoi(pid));
  return pids;
}

bool wait_until_exited(pid_t pid) {
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return errno == ESRCH;
  pollfd waiting = {descriptor, POLLIN, 0};
  const bool ended = poll(&waiting, 1, 60'000) == 1;
  close(descriptor);
  return ended;
}

void check_killed_rank_is_named(Process& supervisor, std::size_t rank, pid_t pid) {
  const int status = supervisor.wait();
  INFO(supervisor.output());
  CHECK(status == 1);
  CHECK(supervisor.output().find("error: rank " + std::to_string(rank) + " (process " + std::to_string(pid) +
                                 ") was killed by SIGKILL") != std::string::npos);
}

void stop(pid_t pid) {
  if (kill(pid, SIGSTOP) != 0) throw std::runtime_error("no process to stop");
  for (;;) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name_end = text.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos) throw std::runtime_error("no process to stop");
    if (text.compare(name_end + 2, 1, "T") == 0) return;
    std::this_thread::yield();
  }
}

std::uint16_t unused_port() {
  constexpr int kFirst = 20'000, kCount = 10'000;
  static int next = getpid() * 17;
  for (int tries = 0; tries < kCount; ++tries) {
    const auto port = static_cast<std::uint16_t>(kFirst + next++ % kCount);
    try {
      const runner::core::ListeningSocket socket(port);
      return port;
    } catch (const runner::core::RunError&) {  // in use
    }
  }
  throw std::runtime_error("no port is free");
}

}  // namespace tests
