#include "runner/launch/local_ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/launch/cpu_affinity.h"
#include "runner/launch/rank_environment.h"

namespace runner::launch {

/// The pipe on which rank 0 reports the folder of its run.
class LocalRanks::Report {
 public:
  Report() {
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) {
      throw core::RunError(std::string("cannot create a pipe: ") + std::strerror(errno));
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

LocalRanks::LocalRanks(const LaunchPlan& plan, const RankAssignment& assignment, const Rendezvous& rendezvous)
    : assignment_(assignment),
      grace_ns_(plan.grace_ms * 1'000'000),
      end_timeout_s_(plan.end_timeout_s),
      report_(std::make_unique<Report>()) {
  if (!plan.log_dir.empty()) core::make_folders(plan.log_dir).value();
  for (int local_rank = 0; local_rank < assignment.local_size; ++local_rank) {
    ranks_.push_back(start(plan, assignment, rendezvous, local_rank));
  }
  told_.assign(ranks_.size(), false);
  overdue_.assign(ranks_.size(), "");
}

LocalRanks::~LocalRanks() = default;

std::unique_ptr<RankProcess> LocalRanks::start(const LaunchPlan& plan, const RankAssignment& assignment,
                                               const Rendezvous& rendezvous, int local_rank) {
  core::RankInfo info;
  info.rank = assignment.first_rank + local_rank;
  info.size = assignment.world_size;
  info.local_rank = local_rank;
  info.local_size = assignment.local_size;
  info.master_addr = rendezvous.address;
  info.master_port = rendezvous.port;
  RankProcess::Options options;
  options.environment = plan.environment;
  options.environment.merge(environment_of(info));
  options.environment[kSupervised] = "1";
  if (plan.pin_cores) {
    const std::vector<int> cores = own_cores_by_node();
    options.cores = cores_of_rank(cores, local_rank, assignment.local_size);
    options.environment[kCores] = core::joined(cores, ",", [](int core) { return std::to_string(core); });
  }
  const std::string number = std::to_string(info.rank);
  if (info.rank == 0) {
    options.descriptors = {report_->descriptor()};
    options.environment[kReportDescriptor] = std::to_string(report_->descriptor());
  }
  if (!plan.log_dir.empty()) options.log_file = plan.log_dir + "/rank-" + number + ".log";
  // The last output of rank 0 is sent to other machines.
  const bool keep = info.rank > 0 || !plan.log_dir.empty() || assignment.machines > 1;
  if (keep) options.output = RankProcess::Output::kKept;
  if (info.rank == 0) {
    options.show_output = options.show_error = true;
  } else {
    options.show_output = (plan.tee & 1) != 0;
    options.show_error = (plan.tee & 2) != 0;
    options.prefix = "[" + plan.role + number + "]: ";
  }
  return std::make_unique<RankProcess>("rank " + number, plan.command(assignment), options);
}

void LocalRanks::add_to(std::vector<pollfd>& waiting) const {
  for (const auto& rank : ranks_) {
    for (const int output : rank->outputs()) waiting.push_back({output, POLLIN, 0});
  }
}

RankEnd LocalRanks::end_of(std::size_t i) const {
  const RankProcess& process = *ranks_[i];
  RankEnd end;
  end.rank = assignment_.first_rank + static_cast<int>(i);
  end.who = process.name() + " (process " + std::to_string(process.pid()) +
            (assignment_.machines > 1 ? " on " + core::host_name() : "") + ")";
  end.status = process.status();
  end.signal = process.signal();
  end.forwarded_signal = forwarded_signal_;
  end.killed_after_failure = gave_up_;
  end.words = process.exit_message();
  end.overdue = !overdue_[i].empty();
  if (end.overdue) end.text = end.who + " " + overdue_[i];
  return end;
}

std::vector<RankEnd> LocalRanks::take_ended() {
  std::vector<RankEnd> ends;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i]->read_output();
    if (told_[i] || !ranks_[i]->has_ended()) continue;
    told_[i] = true;
    ends.push_back(end_of(i));
    if (ends.back().is_regular()) expect_end();
  }
  const std::int64_t now_ns = core::system_clock().monotonic_ns();
  if (end_deadline_ns_ != 0 && now_ns >= end_deadline_ns_) kill_overdue();
  if (deadline_ns_ != 0 && !gave_up_ && now_ns >= deadline_ns_) {
    gave_up_ = true;
    for (const auto& rank : ranks_) rank->send(SIGKILL);
  }
  return ends;
}

bool LocalRanks::over() const { return std::find(told_.begin(), told_.end(), false) == told_.end(); }

void LocalRanks::forward_signal(int signal) {
  if (signal == SIGINT && forwarded_signal_ == SIGINT)
    begin_grace();  // a second Ctrl-C does not wait for a rank that hangs
  forwarded_signal_ = signal;
  for (const auto& rank : ranks_) rank->send(signal);
}

void LocalRanks::begin_grace() {
  if (deadline_ns_ == 0) deadline_ns_ = core::system_clock().monotonic_ns() + grace_ns_;
}

void LocalRanks::expect_end() {
  if (end_deadline_ns_ != 0) return;
  end_deadline_ns_ = core::system_clock().monotonic_ns() + static_cast<std::int64_t>(end_timeout_s_ * 1e9);
}

void LocalRanks::kill_overdue() {
  end_deadline_ns_ = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (told_[i] || !overdue_[i].empty()) continue;
    const bool is_stopped = ranks_[i]->is_stopped(), writes_results = assignment_.first_rank + i == 0;
    if (writes_results && !is_stopped) {
      expect_end();
      continue;
    }
    overdue_[i] = "did not end within " + core::format_duration(end_timeout_s_) + " (launch.timeout) of the others" +
                  (is_stopped ? ": it is stopped, as by SIGSTOP" : "");
    ranks_[i]->send(SIGKILL);
  }
}

int LocalRanks::timeout_ms() const {
  const std::int64_t grace_end_ns = gave_up_ ? 0 : deadline_ns_;
  if (grace_end_ns == 0 && end_deadline_ns_ == 0) return -1;
  const bool is_grace_next = end_deadline_ns_ == 0 || (grace_end_ns != 0 && grace_end_ns < end_deadline_ns_);
  const std::int64_t left_ns = (is_grace_next ? grace_end_ns : end_deadline_ns_) - core::system_clock().monotonic_ns();
  return left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
}

std::string LocalRanks::run_dir() { return report_->run_dir(); }

std::string LocalRanks::pids() const {
  return core::joined(ranks_, ", ", [](const auto& rank) { return rank->pid(); });
}

}  // namespace runner::launch
