#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <utility>

#include "runner/core/error.h"
#include "runner/launch/agent_connection.h"
#include "runner/launch/exit_message.h"
#include "runner/launch/rank_process.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {
namespace {

using core::Node;
using launch::RankProcess;

constexpr int kLeave_ms = 2000;  ///< for a process whose end of the socket is closed already

class ByFork final : public Trainings {
 public:
  explicit ByFork(std::string program) : program_(std::move(program)) {}

  void start(std::int64_t trial, Training training) override {
    if (template_ == nullptr) begin();
    std::vector<Node> list;
    for (const std::string& word : training.words) list.push_back(Node::string(word));
    Node message = Node::mapping();
    message.set("start", Node::integer(trial));
    message.set("words", Node::sequence(std::move(list)));
    say(message);
    running_.insert(trial);
  }

  void send(std::int64_t trial, int signal) override {
    if (!running_.contains(trial)) return;
    Node message = Node::mapping();
    message.set("signal", Node::integer(signal));
    message.set("trial", Node::integer(trial));
    say(message);
  }

  std::vector<int> descriptors() const override {
    if (template_ == nullptr) return {};
    std::vector<int> list = template_->outputs();
    if (link_->is_open()) list.push_back(link_->descriptor());
    return list;
  }

  std::vector<End> take_ended() override {
    std::vector<End> list;
    if (template_ == nullptr) return list;
    template_->read_output();
    for (const Node& message : link_->receive()) {
      list.push_back({message.find("trial")->as_integer(), static_cast<int>(message.find("status")->as_integer()),
                      message.find("words")->as_string(), message.find("refusal")->as_string()});
      running_.erase(list.back().trial);
    }
    if (!link_->is_open()) lose_all(list);
    return list;
  }

 private:
  void begin() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw core::RunError(std::string("cannot create a socket: ") + std::strerror(errno));
    }
    link_ = std::make_unique<launch::AgentConnection>(ends[0], launch::AgentConnection::Options{});
    RankProcess::Options options;
    options.output = RankProcess::Output::kKept;
    options.descriptors = {ends[1]};
    options.environment = {{kBindNow, "1"}};
    const std::vector<std::string> command = {program_, "fork-trainings", std::to_string(ends[1])};
    try {
      template_ = std::make_unique<RankProcess>("what trials are forked from", command, options);
    } catch (const core::RunError&) {
      close(ends[1]);
      throw;
    }
    close(ends[1]);
  }

  /// Messages are small, and it does nothing but wait for them.
  void say(const Node& message) {
    pollfd room = {link_->descriptor(), POLLOUT, 0};
    while (link_->is_open() && poll(&room, 1, -1) < 0 && errno == EINTR) {
    }
    link_->send(message);
  }

  /// It ended, and so have its forks: each of them held its end of the socket.
  void lose_all(std::vector<End>& list) {
    for (int waited_ms = 0; !template_->has_ended() && waited_ms < kLeave_ms; ++waited_ms) poll(nullptr, 0, 1);
    const int status = template_->has_ended() ? template_->status() : 128 + SIGKILL;
    // Unless it was killed it failed to start: no trial's fault.
    const std::string refusal = status < 128 ? "the process that trials are forked from has ended: " +
                                                   launch::in_one_line(template_->exit_message())
                                             : "";
    for (const std::int64_t trial : running_) list.push_back({trial, status, template_->exit_message(), refusal});
    running_.clear();
    template_.reset();
    link_.reset();
  }

  std::string program_;
  std::unique_ptr<RankProcess> template_;
  std::unique_ptr<launch::AgentConnection> link_;
  std::set<std::int64_t> running_;
};

}  // namespace

std::unique_ptr<Trainings> trainings_by_fork(std::string program) {
  return std::make_unique<ByFork>(std::move(program));
}

}  // namespace runner::sweep
