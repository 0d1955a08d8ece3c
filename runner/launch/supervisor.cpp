#include "runner/launch/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/listening_socket.h"
#include "runner/launch/rank_environment.h"
#include "runner/launch/rank_process.h"

namespace runner::launch {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/// Our signals, as something to be polled; the handlers are as before when it goes.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kForwarded) sigaddset(&set, signal);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) throw core::RunError(std::string("cannot watch for signals: ") + std::strerror(errno));
  }
  ~Signals() {
    close(descriptor_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  std::optional<int> next() const {
    signalfd_siginfo info;
    if (read(descriptor_, &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// Where rank 0 tells the folder of its run.
class Report {
 public:
  Report() {
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) {
      throw core::RunError(std::string("cannot make a pipe: ") + std::strerror(errno));
    }
  }
  ~Report() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  int descriptor() const { return ends_[1]; }  ///< of rank 0
  std::string run_dir() {
    char bytes[4096];
    for (ssize_t got = 0; (got = read(ends_[0], bytes, sizeof bytes)) > 0;) {
      text_.append(bytes, static_cast<std::size_t>(got));
    }
    return text_.ends_with('\n') ? text_.substr(0, text_.size() - 1) : "";
  }

 private:
  int ends_[2] = {-1, -1};
  std::string text_;
};

/// A status that says nothing against the rank itself.
bool is_good(int status) { return status == core::kExitDone || status == core::kExitResumable; }

/// Who only lost another rank says best himself which one that is.
std::string how_it_ended(const RankProcess& process) {
  const std::string words = process.last_words();
  if (process.status() == core::kExitPeerLost && !words.empty()) return words;
  const std::string who = process.name() + " (process " + std::to_string(process.pid()) + ") ";
  const std::string after = words.empty() ? "" : ": " + words;
  if (!process.was_killed()) return who + "failed with exit status " + std::to_string(process.status()) + after;
  const char* name = sigabbrev_np(process.signal());
  return who + "was killed by " + (name != nullptr ? "SIG" + std::string(name) : std::to_string(process.signal())) +
         after;
}

/// One group of ranks, from its start to its end.
class Group {
 public:
  Group(const LaunchPlan& plan, const std::vector<std::string>& command, const Signals& signals)
      : signals_(signals), grace_ns_(plan.grace_ms * 1'000'000) {
    core::ListeningSocket socket;
    RankProcess::Options options;
    options.output = RankProcess::Output::kKept;
    options.descriptors = {socket.descriptor()};
    store_ = std::make_unique<RankProcess>("the store of the ranks",
                                           plan.store_command(socket.descriptor(), socket.port()), options);
    std::string pids;
    for (int rank = 0; rank < plan.num_processes; ++rank) {
      core::RankPlace place;
      place.rank = place.local_rank = rank;
      place.size = place.local_size = plan.num_processes;
      place.master_port = socket.port();
      ranks_.push_back(start(plan, command, place));
      pids += (rank == 0 ? "" : ", ") + std::to_string(ranks_.back()->pid());
    }
    plan.say("started " + std::to_string(plan.num_processes) + " ranks as processes " + pids);
  }

  void run() {
    while (look_at_children()) {
      wait_for_news();
      while (const std::optional<int> signal = signals_.next()) {
        if (*signal != SIGCHLD) hand_on(*signal);
      }
    }
  }

  /// Who is to blame; null when nobody is.
  const RankProcess* culprit() const {
    for (const RankProcess* process : failed_) {
      if (process->status() == core::kExitPeerLost || obeyed(*process)) continue;
      // Where all of them found the same thing wrong, the first one has told it.
      const RankProcess& first = *ranks_.front();
      return !process->was_killed() && process->status() == first.status() ? &first : process;
    }
    // Nor who was left by one that can be resumed, as on a full disk.
    const bool stopped = std::any_of(ranks_.begin(), ranks_.end(),
                                     [](const auto& rank) { return rank->status() == core::kExitResumable; });
    if (stopped) return nullptr;
    const auto lost = std::find_if(failed_.begin(), failed_.end(),
                                   [](const RankProcess* process) { return process->status() == core::kExitPeerLost; });
    return lost == failed_.end() ? nullptr : *lost;
  }

  bool is_first(const RankProcess& process) const { return &process == ranks_.front().get(); }
  int forwarded() const { return forwarded_; }
  std::string run_dir() { return report_.run_dir(); }

  int status() const {
    int status = core::kExitDone;
    for (const auto& rank : ranks_) {
      if (obeyed(*rank)) return rank->status();
      if (rank->status() == core::kExitResumable) status = core::kExitResumable;
    }
    return status;
  }

 private:
  std::unique_ptr<RankProcess> start(const LaunchPlan& plan, const std::vector<std::string>& command,
                                     const core::RankPlace& place) {
    RankProcess::Options options;
    options.environment = plan.environment;
    options.environment.merge(environment_of(place));
    options.environment[kSupervised] = "1";
    if (place.rank == 0) {
      options.descriptors = {report_.descriptor()};
      options.environment[kReportDescriptor] = std::to_string(report_.descriptor());
    } else {
      options.output = RankProcess::Output::kKept;
    }
    return std::make_unique<RankProcess>("rank " + std::to_string(place.rank), command, options);
  }

  /// Whether it ended by a signal that we handed on: by default, or by the second SIGINT.
  bool obeyed(const RankProcess& process) const { return forwarded_ != 0 && process.status() == 128 + forwarded_; }

  void hand_on(int signal) {
    forwarded_ = signal;
    for (const auto& rank : ranks_) rank->send(signal);
  }

  /// False when all ranks have ended.
  bool look_at_children() {
    bool all = true;
    for (const auto& rank : ranks_) {
      rank->read_output();
      if (!rank->has_ended()) {
        all = false;
      } else if (!is_good(rank->status())) {
        note_failure(*rank);
      }
    }
    store_->read_output();
    if (!all && store_->has_ended()) note_failure(*store_);
    return !all;
  }

  /// Those that we killed did not fail.
  void note_failure(const RankProcess& process) {
    if (gave_up_ || std::find(failed_.begin(), failed_.end(), &process) != failed_.end()) return;
    failed_.push_back(&process);
    if (deadline_ns_ == 0) deadline_ns_ = core::system_clock().monotonic_ns() + grace_ns_;
  }

  /// Something ended or said something, a signal came, or the others' time is up.
  void wait_for_news() {
    std::vector<pollfd> waiting = {{signals_.descriptor(), POLLIN, 0}};
    for (const auto& rank : ranks_) waiting.push_back({rank->output(), POLLIN, 0});
    waiting.push_back({store_->output(), POLLIN, 0});
    int timeout_ms = -1;
    if (deadline_ns_ != 0) {
      const std::int64_t left_ns = deadline_ns_ - core::system_clock().monotonic_ns();
      if (left_ns <= 0) {
        gave_up_ = true;
        for (const auto& rank : ranks_) rank->send(SIGKILL);
      } else {
        timeout_ms = static_cast<int>(left_ns / 1'000'000 + 1);
      }
    }
    poll(waiting.data(), waiting.size(), timeout_ms);
  }

  const Signals& signals_;
  const std::int64_t grace_ns_;
  Report report_;
  std::unique_ptr<RankProcess> store_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::vector<const RankProcess*> failed_;  // in the order in which it was seen
  std::int64_t deadline_ns_ = 0;            // from the first failure on
  bool gave_up_ = false;                    // it has passed: those that were left have been killed
  int forwarded_ = 0;
};

}  // namespace

LaunchEnd supervise(const LaunchPlan& plan) {
  const Signals signals;
  std::string run_dir;
  for (std::int64_t restarts = 0;; ++restarts) {
    Group group(plan, run_dir.empty() ? plan.command : plan.command_to_go_on(run_dir), signals);
    group.run();
    if (const std::string opened = group.run_dir(); !opened.empty()) run_dir = opened;
    const RankProcess* culprit = group.culprit();
    if (culprit == nullptr) return {group.status(), "", ""};
    const bool told = group.is_first(*culprit) && !culprit->was_killed();
    const std::string message = how_it_ended(*culprit);
    const int status = culprit->status() == core::kExitPeerLost ? core::kExitFailed : culprit->status();
    // What is wrong with the recipe, or with us, is so again; and who wants it to end does not want it back.
    const bool lasting = status == core::kExitUsage || status == core::kExitOurBug || group.forwarded() != 0;
    if (lasting || restarts >= plan.max_restarts) {
      if (told) return {status, "", ""};
      return {status, message,
              restarts > 0 ? "launch.max_restarts " + std::to_string(plan.max_restarts) + " is spent" : ""};
    }
    plan.say(message + "; starting all ranks again, restart " + std::to_string(restarts + 1) + " of " +
             std::to_string(plan.max_restarts));
  }
}

}  // namespace runner::launch
