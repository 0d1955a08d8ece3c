#include "runner/launch/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/listening_socket.h"
#include "runner/core/units.h"
#include "runner/launch/agent_connection.h"
#include "runner/launch/failure_attribution.h"
#include "runner/launch/local_ranks.h"
#include "runner/launch/messages.h"
#include "runner/launch/node_agents.h"
#include "runner/launch/rank_process.h"
#include "runner/launch/signals.h"

namespace runner::launch {
namespace {

constexpr int kAttemptMs = 1'000;  // to connect; signals are checked in between
constexpr int kPauseMs = 100;      // after a refused connection

std::string at(const MachinesPlan& machines) { return machines.address + ":" + std::to_string(machines.port); }

/// `2 ranks`; on several machines `ranks 2 to 3 of 4`.
std::string ranks_text(const RankAssignment& assignment) {
  if (assignment.machines == 1) return std::to_string(assignment.local_size) + " ranks";
  const int last = assignment.first_rank + assignment.local_size - 1;
  return (assignment.local_size == 1
              ? "rank " + std::to_string(last)
              : "ranks " + std::to_string(assignment.first_rank) + " to " + std::to_string(last)) +
         " of " + std::to_string(assignment.world_size);
}

/// The shorter of two timeouts, where -1 is infinite.
int sooner(int a_ms, int b_ms) { return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms; }

void say_started(const LaunchPlan& plan, const RankAssignment& assignment, const LocalRanks& ranks) {
  plan.say("started " + ranks_text(assignment) + " as processes " + ranks.pids());
}

/// The process with the rendezvous store of all ranks.
class Store {
 public:
  explicit Store(const LaunchPlan& plan)
      : socket_(plan.machines.count > 1 ? std::make_unique<core::ListeningSocket>(std::uint16_t{0})
                                        : std::make_unique<core::ListeningSocket>()) {
    RankProcess::Options options;
    options.output = RankProcess::Output::kKept;
    options.descriptors = {socket_->descriptor()};
    process_ = std::make_unique<RankProcess>("the rendezvous store",
                                             plan.store_command(socket_->descriptor(), socket_->port()), options);
  }

  std::uint16_t port() const { return socket_->port(); }
  void add_to(std::vector<pollfd>& waiting) const {
    for (const int output : process_->outputs()) waiting.push_back({output, POLLIN, 0});
  }
  /// Its unexpected end, once.
  std::optional<RankEnd> take_ended() {
    process_->read_output();
    if (told_ || !process_->has_ended()) return std::nullopt;
    told_ = true;
    RankEnd end;
    end.who = process_->name() + " (process " + std::to_string(process_->pid()) + ")";
    end.status = process_->status();
    end.signal = process_->signal();
    end.words = process_->exit_message();
    return end;
  }

 private:
  std::unique_ptr<core::ListeningSocket> socket_;
  std::unique_ptr<RankProcess> process_;
  bool told_ = false;
};

/// The group from one start to its end, on the leader.
class WorkerGroup {
 public:
  WorkerGroup(const LaunchPlan& plan, const RankAssignment& assignment, NodeAgents& agents, const Signals& signals)
      : agents_(agents),
        signals_(signals),
        store_(plan),
        ranks_(plan, assignment, {plan.machines.count > 1 ? plan.machines.address : "127.0.0.1", store_.port()}) {
    agents.start(store_.port());
    say_started(plan, assignment, ranks_);
  }

  FailureAttribution run() {
    for (;;) {
      take_ended();
      if (ranks_.over() && agents_.over()) return verdict();
      std::vector<pollfd> waiting = {{signals_.descriptor(), POLLIN, 0}};
      ranks_.add_to(waiting);
      agents_.add_to(waiting);
      store_.add_to(waiting);
      poll(waiting.data(), waiting.size(), sooner(ranks_.timeout_ms(), agents_.timeout_ms()));
      while (const std::optional<int> signal = signals_.next()) ranks_.forward_signal(*signal);
    }
  }

  std::string run_dir() { return ranks_.run_dir(); }

 private:
  void take_ended() {
    std::vector<RankEnd> ends = ranks_.take_ended();
    for (RankEnd& end : agents_.take_ended()) ends.push_back(std::move(end));
    for (RankEnd& end : ends) {
      if (end.is_regular() && !std::exchange(expects_end_, true)) {
        ranks_.expect_end();
        agents_.expect_end();
      }
      verdict_.add(std::move(end));
    }
    if (!store_end_ && !(ranks_.over() && agents_.over())) store_end_ = store_.take_ended();
    if (stopping_ || !(verdict_.has_failure() || store_end_)) return;
    stopping_ = true;
    ranks_.begin_grace();
    agents_.stop();
  }

  /// If all ranks are done, the end of the store does not matter.
  FailureAttribution verdict() const {
    FailureAttribution all = verdict_;
    if (store_end_ && !all.is_done()) all.add(*store_end_);
    return all;
  }

  NodeAgents& agents_;
  const Signals& signals_;
  Store store_;
  LocalRanks ranks_;
  FailureAttribution verdict_;
  std::optional<RankEnd> store_end_;
  bool stopping_ = false, expects_end_ = false;
};

/// The status of a launch that a signal has ended.
int status_after(const LaunchPlan& plan, int signal) { return plan.is_resumable ? core::kExitResumable : 128 + signal; }

LaunchEnd lead(const LaunchPlan& plan, const Signals& signals, NodeAgents& agents) {
  std::string run_dir;
  for (std::int64_t restarts = 0;; ++restarts) {
    const double timeout_s = restarts == 0 ? plan.machines.timeout_s : plan.machines.join_timeout_s;
    if (auto end = agents.gather(signals, timeout_s)) {
      agents.end(*end);
      return *std::move(end);
    }
    WorkerGroup group(plan, agents.assign_ranks(static_cast<int>(restarts), run_dir), agents, signals);
    const FailureAttribution verdict = group.run();
    if (const std::string opened = group.run_dir(); !opened.empty()) run_dir = opened;
    const RankEnd* culprit = verdict.culprit();
    int status = verdict.status();
    if (status == core::kExitResumable && verdict.was_asked_to_end())
      status = status_after(plan, verdict.forwarded_signal());
    if (culprit == nullptr) {
      agents.end({status, "", ""});
      return {status, "", ""};
    }
    // A wrong recipe or a bug fails again, and a user who stopped the run does not want a restart; nor does a run that
    // some rank has finished.
    const bool lasting = status == core::kExitUsage || status == core::kExitInternalError ||
                         verdict.was_asked_to_end() || culprit->overdue;
    if (lasting || restarts >= plan.max_restarts) {
      const std::string hint =
          restarts > 0 ? "all restarts are used up (launch.max_restarts: " + std::to_string(plan.max_restarts) + ")"
                       : "";
      const LaunchEnd end{status, culprit->message(), hint};
      agents.end(end);
      // Rank 0 prints to this terminal; and who reads its output knows of having stopped.
      const bool told = culprit->rank == 0 && (culprit->signal == 0 || culprit->signal == SIGPIPE);
      return told ? LaunchEnd{status, "", ""} : end;
    }
    const std::string message = culprit->message();
    const bool is_one_line = message.find('\n') == std::string::npos;
    plan.say(message + (is_one_line ? "; " : "\n") + "restarting all ranks, restart " + std::to_string(restarts + 1) +
             " of " + std::to_string(plan.max_restarts));
  }
}

/// Connects to the leader; returns the end of the launch when that fails.
std::optional<LaunchEnd> join(const LaunchPlan& plan, const Signals& signals, std::int64_t deadline_ns,
                              std::optional<AgentConnection>& link) {
  const core::Clock& clock = core::system_clock();
  for (bool told = false;; told = true) {
    const std::int64_t left_ms = std::max<std::int64_t>(0, (deadline_ns - clock.monotonic_ns()) / 1'000'000);
    const auto connected = try_connect(plan.machines.address, plan.machines.port,
                                       static_cast<int>(std::min<std::int64_t>(left_ms, kAttemptMs)));
    if (connected) {
      link.emplace(connected.value(), AgentConnection::Options{plan.machines.monitor_interval_s});
      link->send(message(own_hello(plan)));
      return std::nullopt;
    }
    if (!told && left_ms > 0) {
      plan.say("cannot reach machine 0 yet: " + connected.failure().message + "; retrying for " +
               core::format_duration(static_cast<double>(left_ms) * 1e-3));
    }
    pollfd waiting = {signals.descriptor(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left_ms, kPauseMs)));
    if (const auto signal = signals.next()) return LaunchEnd{status_after(plan, *signal), "", ""};
    if (left_ms > 0) continue;
    return LaunchEnd{core::kExitFailed,
                     "cannot reach machine 0 at " + at(plan.machines) + " within " +
                         core::format_duration(plan.machines.timeout_s) + ": " + connected.failure().message,
                     "launch.main_process_ip and main_process_port must be those of machine 0, which must run the same "
                     "command and be reachable from here"};
  }
}

/// Runs the ranks of this machine until the group ends; sets `end` when the leader ends the launch or is lost.
void follow_life(const LaunchPlan& plan, const Start& start, const Signals& signals, AgentConnection& link,
                 std::optional<LaunchEnd>& end) {
  LocalRanks ranks(plan, start.assignment, {plan.machines.address, start.store_port});
  say_started(plan, start.assignment, ranks);
  for (;;) {
    for (const RankEnd& ended : ranks.take_ended()) link.send(message(ended));
    for (const core::Node& message : link.receive()) {
      if (is_stop(message)) ranks.begin_grace();
      if (is_end_expected(message)) ranks.expect_end();
      if (!end) end = end_of(message);
    }
    if (ranks.over() || end) return;
    if (!link.is_open()) {
      end = LaunchEnd{core::kExitFailed, "lost machine 0 at " + at(plan.machines) + ": " + link.why_it_ended(), ""};
      return;
    }
    std::vector<pollfd> waiting = {{signals.descriptor(), POLLIN, 0}, {link.descriptor(), POLLIN, 0}};
    ranks.add_to(waiting);
    poll(waiting.data(), waiting.size(), ranks.timeout_ms());
    while (const std::optional<int> signal = signals.next()) ranks.forward_signal(*signal);
  }
}

/// Sends a failure to the leader before it is reported here.
void follow_or_tell(const LaunchPlan& plan, const Start& start, const Signals& signals, AgentConnection& link,
                    std::optional<LaunchEnd>& end) {
  try {
    follow_life(plan, start, signals, link, end);
  } catch (const core::RunError& error) {
    RankEnd failed;
    failed.status = error.exit_code();
    failed.text = error.what();
    link.send(message(failed));
    throw;
  }
}

LaunchEnd follow(const LaunchPlan& plan, const Signals& signals) {
  const std::int64_t deadline_ns =
      core::system_clock().monotonic_ns() + static_cast<std::int64_t>(plan.machines.timeout_s * 1e9);
  plan.say("connecting to machine 0 at " + at(plan.machines));
  std::optional<AgentConnection> link;
  if (auto end = join(plan, signals, deadline_ns, link)) return *std::move(end);
  std::optional<LaunchEnd> end;
  bool heard = false;
  for (;;) {
    for (const core::Node& message : link->receive()) {
      heard = true;
      if (const auto start = start_of(message); start && !end) follow_or_tell(plan, *start, signals, *link, end);
      if (!end) end = end_of(message);
    }
    if (end) return *end;
    if (!link->is_open() && !heard) {  // another launch was just ending there
      pollfd pause = {signals.descriptor(), POLLIN, 0};
      poll(&pause, 1, kPauseMs);
      if (auto none = join(plan, signals, deadline_ns, link)) return *std::move(none);
    }
    if (!link->is_open()) {
      return {core::kExitFailed, "lost machine 0 at " + at(plan.machines) + ": " + link->why_it_ended(),
              "see its output for the reason"};
    }
    pollfd waiting[] = {{signals.descriptor(), POLLIN, 0}, {link->descriptor(), POLLIN, 0}};
    poll(waiting, 2, -1);
    if (const auto signal = signals.next()) return {status_after(plan, *signal), "", ""};
  }
}

}  // namespace

LaunchEnd supervise(const LaunchPlan& plan) {
  const Signals signals;
  const MachinesPlan& machines = plan.machines;
  const bool counts_as_they_come = machines.count > 1 && !machines.rank;
  if (machines.rank.value_or(0) > 0) return follow(plan, signals);
  if (counts_as_they_come && !is_own_address(machines.address).value()) return follow(plan, signals);
  std::unique_ptr<NodeAgents> agents;
  try {
    agents = std::make_unique<NodeAgents>(plan);
  } catch (const core::RunError&) {
    if (counts_as_they_come) return follow(plan, signals);  // another process on this machine leads
    throw;
  }
  try {
    return lead(plan, signals, *agents);
  } catch (const core::RunError& error) {
    agents->end({error.exit_code(), "machine 0 failed: " + std::string(error.what()), error.hint()});
    throw;
  }
}

}  // namespace runner::launch
