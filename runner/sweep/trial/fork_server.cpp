#include <poll.h>

#include <deque>
#include <map>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/launch/agent_connection.h"
#include "runner/launch/rank_process.h"
#include "runner/launch/signals.h"
#include "runner/sweep/trial/trainings.h"

namespace runner::sweep {
namespace {

using core::Node;
using launch::RankProcess;

constexpr std::size_t kWordsBytesMax = 16 << 10;  // of a training that ended

class Server {
 public:
  Server(int descriptor, TrialRunner& trained) : link_(descriptor, {}), trained_(trained) {}

  void serve() {
    while (link_.is_open()) {
      wait_for_something();
      for (const Node& message : link_.receive()) take(message);
      look_at_processes();
      answer();
    }
  }

 private:
  void wait_for_something() const {
    const auto wanted = static_cast<short>(answers_.empty() ? POLLIN : POLLIN | POLLOUT);
    std::vector<pollfd> waiting = {{link_.descriptor(), wanted, 0}, {signals_.descriptor(), POLLIN, 0}};
    for (const auto& [trial, process] : processes_) {
      for (const int descriptor : process->outputs()) waiting.push_back({descriptor, POLLIN, 0});
    }
    poll(waiting.data(), waiting.size(), -1);
    while (signals_.next()) {  // the worker decides what a signal means for its trials
    }
  }

  void take(const Node& message) {
    if (const Node* trial = message.find("start")) return start(trial->as_integer(), *message.find("words"));
    const auto found = processes_.find(message.find("trial")->as_integer());
    if (found == processes_.end()) return;
    found->second->send(static_cast<int>(message.find("signal")->as_integer()));
  }

  void start(std::int64_t trial, const Node& list) {
    std::vector<std::string> words;
    for (const Node& word : list.items()) words.push_back(word.as_string());
    try {
      trained_.before_fork(words);
      RankProcess::Options options;
      options.output = RankProcess::Output::kKept;
      processes_[trial] = std::make_unique<RankProcess>(
          "trial " + std::to_string(trial), [&] { return trained_.train(words); }, options);
    } catch (const core::RunError& refused) {  // the others continue
      tell_end(trial, core::kExitFailed, "", refused.what());
    }
  }

  void tell_end(std::int64_t trial, int status, const std::string& words, const std::string& refusal = "") {
    Node end = Node::mapping();
    end.set("trial", Node::integer(trial));
    end.set("status", Node::integer(status));
    end.set("words", Node::string(words));
    end.set("refusal", Node::string(refusal));
    answers_.push_back(std::move(end));
  }

  void look_at_processes() {
    for (auto at = processes_.begin(); at != processes_.end();) {
      RankProcess& process = *at->second;
      process.read_output();
      if (!process.has_ended()) {
        ++at;
        continue;
      }
      tell_end(at->first, process.status(), process.exit_message().substr(0, kWordsBytesMax));
      at = processes_.erase(at);
    }
  }

  /// As much as fits: a busy worker must not block reading its messages.
  void answer() {
    while (!answers_.empty() && link_.is_open()) {
      pollfd room = {link_.descriptor(), POLLOUT, 0};
      if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
      link_.send(answers_.front());
      answers_.pop_front();
    }
  }

  launch::AgentConnection link_;
  launch::Signals signals_;
  TrialRunner& trained_;
  std::map<std::int64_t, std::unique_ptr<RankProcess>> processes_;
  std::deque<Node> answers_;
};

}  // namespace

void serve_trainings(int descriptor, TrialRunner& trained) { Server(descriptor, trained).serve(); }

}  // namespace runner::sweep
