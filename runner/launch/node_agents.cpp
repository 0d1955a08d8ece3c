#include "runner/launch/node_agents.h"

#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"

namespace runner::launch {
namespace {

std::string count_text(const Hello& hello) {
  return "num_processes " + std::to_string(hello.num_processes) + " on num_machines " +
         std::to_string(hello.num_machines);
}

}  // namespace

Hello own_hello(const LaunchPlan& plan) {
  Hello hello;
  hello.program = std::string(core::program_version()) + " of source " + core::source_hash();
  hello.host = core::host_name();
  hello.rank = plan.machines.rank;
  hello.num_processes = plan.num_processes;
  hello.num_machines = plan.machines.count;
  return hello;
}

NodeAgents::NodeAgents(const LaunchPlan& plan) : plan_(plan) {
  if (plan.machines.count == 1) return;
  socket_ = std::make_unique<core::ListeningSocket>(plan.machines.port);
  // Its own ranks use the address, too. A warning only: a router may translate it to this machine.
  if (is_own_address(plan.machines.address).value()) return;
  plan.say(plan.machines.address +
           " is not an address of this machine; set main_process_ip to the address of machine 0");
}

NodeAgents::~NodeAgents() = default;

int NodeAgents::slots(int machine) const {
  if (!plan_.machines.slots.empty()) return plan_.machines.slots.at(static_cast<std::size_t>(machine));
  const int each = plan_.num_processes / plan_.machines.count;
  return each + (machine < plan_.num_processes % plan_.machines.count ? 1 : 0);
}

bool NodeAgents::complete() const { return static_cast<int>(machines_.size()) + 1 == plan_.machines.count; }

std::optional<LaunchEnd> NodeAgents::gather(const Signals& signals, double timeout_s) {
  if (socket_ == nullptr) return std::nullopt;
  const core::Clock& clock = core::system_clock();
  const std::int64_t deadline_ns = clock.monotonic_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  forget_lost();
  start_missing();
  if (!complete()) plan_.say("waiting for the other machines on port " + std::to_string(socket_->port()));
  while (!complete()) {
    const std::int64_t left_ms = (deadline_ns - clock.monotonic_ns()) / 1'000'000;
    if (left_ms <= 0) {
      if (static_cast<int>(machines_.size()) + 1 >= plan_.machines.min_count) break;
      return absent(timeout_s);
    }
    std::vector<pollfd> waiting = {{signals.descriptor(), POLLIN, 0}, {socket_->descriptor(), POLLIN, 0}};
    for (const AgentConnection& link : newcomers_) waiting.push_back({link.descriptor(), POLLIN, 0});
    add_to(waiting);
    poll(waiting.data(), waiting.size(), static_cast<int>(std::min<std::int64_t>(left_ms, 60'000)));
    if (const auto signal = signals.next())
      return LaunchEnd{plan_.is_resumable ? core::kExitResumable : 128 + *signal, "", ""};
    if ((waiting[1].revents & POLLIN) != 0) accept_one();
    if (auto end = read_newcomers()) return end;
    if (auto end = check_remote_starts()) return end;
    forget_lost();
  }
  return std::nullopt;
}

LaunchEnd NodeAgents::absent(double timeout_s) const {
  std::string who;
  int count = 0;
  for (int rank = 1; rank < plan_.machines.count; ++rank) {
    if (machines_.contains(rank)) continue;
    who += (count++ == 0 ? "" : ", ") + std::to_string(rank);
  }
  const auto own = is_own_address(plan_.machines.address);
  const std::string hint =
      own.value_or(true)
          ? "run the same command on each with its own --machine-rank; that address must be reachable from there"
          : plan_.machines.address +
                " is not an address of this machine; set main_process_ip to the address of machine 0";
  return {core::kExitFailed,
          (count == 1 ? "machine " : "machines ") + who + " of " + std::to_string(plan_.machines.count) +
              " did not connect to " + plan_.machines.address + ":" + std::to_string(socket_->port()) + " within " +
              core::format_duration(timeout_s),
          hint};
}

void NodeAgents::start_missing() {
  for (int rank = 1; rank < static_cast<int>(plan_.machines.hosts.size()); ++rank) {
    if (machines_.contains(rank)) continue;
    const std::string& host = plan_.machines.hosts[static_cast<std::size_t>(rank)];
    RankProcess::Options options;
    options.output = RankProcess::Output::kKept;
    options.show_output = options.show_error = true;
    options.prefix = "[" + host + "]: ";
    remote_[rank] = std::make_unique<RankProcess>("ssh " + host, plan_.machines.remote_command(host, rank), options);
  }
}

std::optional<LaunchEnd> NodeAgents::check_remote_starts() {
  for (auto& [rank, process] : remote_) {
    process->read_output();
    if (machines_.contains(rank) || !process->has_ended()) continue;
    const std::string words = process->exit_message();
    return LaunchEnd{core::kExitFailed,
                     "machine " + std::to_string(rank) + " (" + plan_.machines.hosts[static_cast<std::size_t>(rank)] +
                         ") could not be started: ssh ended with exit status " + std::to_string(process->status()) +
                         (words.empty() ? "" : ": " + words),
                     "`ssh HOST true` must work without a prompt, and roux must be at the same path there"};
  }
  return std::nullopt;
}

void NodeAgents::accept_one() {
  const int descriptor = accept4(socket_->descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor >= 0) newcomers_.emplace_back(descriptor, AgentConnection::Options{plan_.machines.monitor_interval_s});
}

std::optional<LaunchEnd> NodeAgents::read_newcomers() {
  std::vector<AgentConnection> silent;
  std::optional<LaunchEnd> end;
  for (AgentConnection& link : newcomers_) {
    const std::vector<core::Node> messages = link.receive();
    const auto hello = messages.empty() ? std::nullopt : hello_of(messages.front());
    if (hello && !end) {
      end = admit(std::move(link), *hello);
    } else if (link.is_open() && messages.empty()) {
      silent.push_back(std::move(link));
    }  // else it is not a machine of this launch
  }
  newcomers_ = std::move(silent);
  return end;
}

std::optional<LaunchEnd> NodeAgents::admit(AgentConnection link, const Hello& hello) {
  const Hello own = own_hello(plan_);
  int rank = hello.rank.value_or(1);
  while (!hello.rank && machines_.contains(rank)) ++rank;
  const std::string both = "machines 0 (" + own.host + ") and " + std::to_string(rank) + " (" + hello.host + ")";
  LaunchEnd refusal{core::kExitUsage, "", "all machines of a launch must use the same"};
  if (hello.program != own.program) {
    refusal.message = both + " run different programs: " + own.program + " and " + hello.program;
  } else if (count_text(hello) != count_text(own)) {
    refusal.message = both + " expect different launches: " + count_text(own) + " and " + count_text(hello);
  } else if (rank == 0 || rank >= plan_.machines.count || machines_.contains(rank)) {
    refusal.message = "two machines have machine_rank " + std::to_string(rank) + ": one of them is " + hello.host;
    refusal.hint = "give each machine its own machine_rank, from 0 to num_machines - 1";
  }
  if (!refusal.message.empty()) {
    link.send(message(refusal));
    return refusal;
  }
  machines_.insert_or_assign(rank, Machine{std::move(link), hello.host, {}, 0});
  return std::nullopt;
}

void NodeAgents::forget_lost() {
  std::erase_if(machines_, [](const auto& entry) { return !entry.second.link.is_open(); });
}

RankAssignment NodeAgents::assign_ranks(int restart_count, const std::string& run_dir) {
  RankAssignment own;
  own.local_size = slots(0);
  own.world_size = own.local_size;
  own.machines = static_cast<int>(machines_.size()) + 1;
  own.restart_count = restart_count;
  own.run_dir = run_dir;
  deadline_ns_ = 0;
  for (auto& [rank, machine] : machines_) {
    machine.assignment = own;
    machine.assignment.first_rank = own.world_size;
    machine.assignment.local_size = slots(rank);
    own.world_size += machine.assignment.local_size;
    machine.ended = 0;
  }
  for (auto& [rank, machine] : machines_) machine.assignment.world_size = own.world_size;
  return own;
}

void NodeAgents::start(std::uint16_t store_port) {
  for (auto& [rank, machine] : machines_) machine.link.send(message(Start{machine.assignment, store_port}));
}

void NodeAgents::add_to(std::vector<pollfd>& waiting) const {
  for (const auto& [rank, machine] : machines_) waiting.push_back({machine.link.descriptor(), POLLIN, 0});
  for (const auto& [rank, process] : remote_) {
    for (const int output : process->outputs()) waiting.push_back({output, POLLIN, 0});
  }
}

std::vector<RankEnd> NodeAgents::take_ended() {
  std::vector<RankEnd> ends;
  for (auto& [rank, process] : remote_) process->read_output();
  const bool late = timeout_ms() == 0;
  for (auto& [rank, machine] : machines_) {
    for (const core::Node& message : machine.link.receive()) {
      if (auto end = rank_end_in(message)) {
        const bool of_all = end->rank == RankEnd::kNoRank;
        if (of_all) end->text = machine.name(rank) + " failed: " + end->text;
        machine.ended = of_all ? machine.assignment.local_size : machine.ended + 1;
        ends.push_back(*std::move(end));
      }
    }
    if (machine.ended >= machine.assignment.local_size) continue;
    if (late && machine.link.is_open()) machine.link.end("it does not report how its ranks ended");
    if (machine.link.is_open()) continue;
    machine.ended = machine.assignment.local_size;
    RankEnd lost;
    lost.who = machine.name(rank);
    lost.status = core::kExitFailed;
    lost.text = "lost " + machine.name(rank) + " at " + machine.link.peer() + ": " + machine.link.why_it_ended();
    ends.push_back(lost);
  }
  return ends;
}

bool NodeAgents::over() const {
  return std::all_of(machines_.begin(), machines_.end(),
                     [](const auto& entry) { return entry.second.ended >= entry.second.assignment.local_size; });
}

void NodeAgents::expect_end() {
  for (auto& [rank, machine] : machines_) machine.link.send(end_expected_message());
}

void NodeAgents::stop() {
  for (auto& [rank, machine] : machines_) machine.link.send(stop_message());
  deadline_ns_ = core::system_clock().monotonic_ns() + (plan_.grace_ms + plan_.answer_ms) * 1'000'000;
}

int NodeAgents::timeout_ms() const {
  if (deadline_ns_ == 0 || over()) return -1;
  const std::int64_t left_ns = deadline_ns_ - core::system_clock().monotonic_ns();
  return left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
}

void NodeAgents::end(const LaunchEnd& end) {
  for (auto& [rank, machine] : machines_) machine.link.send(message(end));
}

}  // namespace runner::launch
