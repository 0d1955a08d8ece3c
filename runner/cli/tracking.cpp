#include "runner/cli/tracking.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <future>
#include <utility>

#include "generated/section/tracker_common.h"
#include "runner/core/beside.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/process.h"

namespace runner::cli {
namespace {

constexpr std::int64_t kForEver_ms = 24LL * 3600 * 1000;
constexpr std::int64_t kLeave_ms = 2000;  // after it was asked to

}  // namespace

std::string tracker_name(const core::Node& tracker) {
  const core::Node* name = tracker.find("name");
  return name != nullptr && name->is_string() ? name->as_string() : tracker.find("type")->as_string();
}

/// A process and the thread that reads what it says, which ends with it.
struct Tracking::Follower {
  Follower(std::string called, double timeout_s, const std::vector<std::string>& command)
      : name(std::move(called)),
        finish_timeout_s(timeout_s),
        process(command, {}, core::Process::Fate::kOutlivesParent) {
    reading = core::beside([this] {
      for (std::string line; process.read_line(line, kForEver_ms) != core::Process::Read::kEnd;) {
        core::log_warning("tracker " + name + ": " + line);
      }
    });
  }

  std::string name;
  double finish_timeout_s;
  core::Process process;
  std::future<void> reading;
};

Tracking::Tracking(const Session& session, const registry::Recipe& recipe) : session_(session), recipe_(recipe) {}

// Their threads end when they do; what was not waited for goes on without us.
Tracking::~Tracking() {
  for (auto& follower : followers_) static_cast<void>(follower.release());
}

void Tracking::begin(const std::string& run_dir) {
  run_dir_ = run_dir;
  for (const core::Node& tracker : recipe_.at("trackers").items()) {
    const std::string name = tracker_name(tracker);
    const std::vector<std::string> command = {core::own_program(), "--log-format", session_.log_format,
                                              "--quiet",           "sync",         run_dir,
                                              "--tracker",         name,           "--follow"};
    const double timeout_s = sections::tracker_common::parse_config(tracker).finish_timeout;
    const auto started =
        core::attempt([&] { followers_.push_back(std::make_unique<Follower>(name, timeout_s, command)); });
    if (!started) core::log_warning("tracker " + name + " is left for `roux sync`: " + started.failure().message);
  }
}

void Tracking::finish() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto over = [](const Follower& follower, Clock::time_point until) {
    return follower.reading.wait_until(until) == std::future_status::ready;
  };
  for (auto& follower : followers_) {
    if (!over(*follower, begin + std::chrono::milliseconds(200)))
      core::log_info("waiting for tracker " + follower->name);
    const auto patience = std::chrono::milliseconds(std::llround(follower->finish_timeout_s * 1000));
    if (!over(*follower, begin + patience)) follower->process.send(SIGTERM);
  }
  const auto leave = std::chrono::milliseconds(kLeave_ms);
  const auto last = Clock::now() + leave;
  for (auto& follower : followers_) {
    if (!over(*follower, last)) {
      follower->process.send(SIGKILL);  // what it has brought so far is on record
      // Something that it has started may keep what it says open.
      if (!over(*follower, Clock::now() + leave)) {
        tell_rest(*follower);
        static_cast<void>(follower.release());
        continue;
      }
    }
    if (follower->process.wait() != core::kExitDone) tell_rest(*follower);
  }
  followers_.clear();
}

void Tracking::tell_rest(const Follower& follower) const {
  core::log_warning("tracker " + follower.name + " has not everything yet: roux sync " + run_dir_ + " --tracker " +
                    follower.name + " brings the rest");
}

}  // namespace runner::cli
