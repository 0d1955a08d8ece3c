#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/launch/agent_connection.h"
#include "runner/sweep/trial/trainings.h"

using runner::core::Node;
using runner::launch::AgentConnection;

namespace {

/// Trainings that end with a status, or wait for a signal. Before "refused" there is no descriptor left.
class Scripted final : public runner::sweep::TrialRunner {
 public:
  void before_fork(const std::vector<std::string>& words) override {
    rlimit limit = all_;
    if (words.front() == "refused") limit.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  int train(const std::vector<std::string>& words) override {
    while (words.front() == "waits") pause();
    return 5;
  }

 private:
  rlimit all_ = [] {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }();
};

void start(AgentConnection& link, std::int64_t trial, const std::string& word) {
  Node message = Node::mapping();
  message.set("start", Node::integer(trial));
  message.set("words", Node::sequence({Node::string(word)}));
  link.send(message);
}

std::string next(AgentConnection& link) {
  for (;;) {
    pollfd waiting = {link.descriptor(), POLLIN, 0};
    poll(&waiting, 1, -1);
    const std::vector<Node> messages = link.receive();
    if (!messages.empty()) return runner::core::to_json(messages.front(), -1);
    if (!link.is_open()) return "";
  }
}

}  // namespace

TEST_CASE("a training for which there is no process ends alone", "[sweep][trainings]") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  std::fflush(nullptr);  // or the training ends with what Catch has not written yet
  const pid_t server = fork();
  if (server == 0) {
    close(ends[0]);
    Scripted scripted;
    runner::sweep::serve_trainings(ends[1], scripted);
    _exit(0);
  }
  close(ends[1]);
  AgentConnection link(ends[0], {});
  start(link, 1, "waits");
  start(link, 2, "refused");
  CHECK(next(link) ==
        R"({"trial": 2, "status": 1, "words": "", "refusal": "cannot start trial 2: Too many open files"})");
  start(link, 3, "ends");
  CHECK(next(link) == R"({"trial": 3, "status": 5, "words": "", "refusal": ""})");
  Node signal = Node::mapping();
  signal.set("signal", Node::integer(SIGKILL));
  signal.set("trial", Node::integer(1));
  link.send(signal);
  CHECK(next(link) == R"({"trial": 1, "status": 137, "words": "", "refusal": ""})");
  link.end("the test is over");
  int status = -1;
  waitpid(server, &status, 0);
  CHECK(status == 0);
}
