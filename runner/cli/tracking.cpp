#include "runner/cli/tracking.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <utility>

#include "generated/section/tracker_common.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/child_log.h"
#include "runner/core/platform/process.h"
#include "runner/core/platform/run_async.h"
#include "runner/resolve/recipe.h"
#include "runner/review/tracker_status.h"
#include "runner/store/feed/cursors.h"
#include "runner/store/feed/feed.h"
#include "trackers/tracker.h"

namespace runner::cli {
namespace {

constexpr std::int64_t kForEver_ms = 24LL * 3600 * 1000;
constexpr std::int64_t kLeave_ms = 2000;  // after SIGTERM
constexpr std::size_t kLinesMax = 1000;   // logged per process
constexpr int kSignalled = 128;           // and the signal, as an exit status

using Clock = std::chrono::steady_clock;

std::string signal_text(int signal) { return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")"; }

/// A line of `roux sync` without its prefix: `error: `, `warning: tracker NAME: `.
std::string without_prefix(std::string line, const std::string& who) {
  for (const std::string& prefix : {std::string("error: "), std::string("warning: "), who + ": "}) {
    if (line.starts_with(prefix)) line.erase(0, prefix.size());
  }
  return line;
}

/// Failure when it is known beforehand that the tool cannot be reached.
core::Result<void> check(const core::Node& tracker, const std::string& name, const std::string& run_dir) {
  const auto cursors = store::read_cursors(run_dir);
  const auto cursor = cursors.find(name);
  const core::Node state = cursor != cursors.end() ? cursor->second.state : core::Node();
  return core::attempt([&] { trackers::build(tracker, {name})->check(state); });
}

std::int64_t ms_until(Clock::time_point time) {
  return std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count());
}

}  // namespace

/// A process and the thread that reads its output.
struct Tracking::Follower {
  Follower(std::string called, double timeout_s, const std::vector<std::string>& command)
      : name(std::move(called)),
        finish_timeout_s(timeout_s),
        process(command, {}, core::Process::Lifetime::kOutlivesParent) {
    reading = core::run_async([this] {
      const std::string who = "tracker " + name;
      core::ChildLog relay(who, kLinesMax);
      for (std::string line;
           process.read_line(line, kForEver_ms, core::ChildLog::kLineBytesMax) != core::Process::Read::kEnd;) {
        relay.say(without_prefix(std::move(line), who));
      }
    });
  }

  /// Its exit status once it has closed its output and ended.
  std::optional<int> ended(Clock::time_point until) {
    if (reading.wait_until(until) != std::future_status::ready) return std::nullopt;
    return process.wait_for(ms_until(until));
  }

  std::string name;
  double finish_timeout_s;
  core::Process process;
  std::future<void> reading;
};

Tracking::Tracking(const Session& session, const resolve::Recipe& recipe) : session_(session), recipe_(recipe) {}

// A process that was not waited for continues without us; its thread ends with it.
Tracking::~Tracking() {
  for (auto& follower : followers_) static_cast<void>(follower.release());
}

void Tracking::begin(const std::string& run_dir) {
  run_dir_ = run_dir;
  for (const core::Node& tracker : recipe_.at("trackers").items()) {
    const std::string name = review::tracker_name(tracker);
    if (const auto ready = check(tracker, name, run_dir); !ready) {
      core::log_warning("tracker " + name + ": " + ready.failure().message + "; " + ready.failure().hint +
                        ", then `roux sync " + run_dir + " --tracker " + name + "`");
      continue;
    }
    const std::vector<std::string> command = {core::own_program(), "--log-format", session_.log_format,
                                              "--quiet",           "sync",         run_dir,
                                              "--tracker",         name,           "--follow"};
    const double timeout_s = sections::tracker_common::parse_config(tracker).finish_timeout;
    const auto started =
        core::attempt([&] { followers_.push_back(std::make_unique<Follower>(name, timeout_s, command)); });
    if (!started) core::log_warning("tracker " + name + " cannot be started: " + started.failure().message);
  }
}

void Tracking::finish() {
  const auto begin = Clock::now();
  std::vector<Follower*> late;
  for (auto& follower : followers_) {
    std::optional<int> status = follower->ended(begin + std::chrono::milliseconds(200));
    if (!status) {
      core::log_info("waiting for tracker " + follower->name);
      const auto patience = std::chrono::milliseconds(std::llround(follower->finish_timeout_s * 1000));
      status = follower->ended(begin + patience);
    }
    if (!status) {
      follower->process.send(SIGTERM);
      late.push_back(follower.get());
    } else if (*status != core::kExitDone) {
      tell_rest(*follower,
                *status > kSignalled ? "its process was killed by " + signal_text(*status - kSignalled) : "");
    }
  }
  const auto leave = Clock::now() + std::chrono::milliseconds(kLeave_ms);
  for (Follower* follower : late) {
    const std::optional<int> status = follower->ended(leave);
    if (status && *status == core::kExitDone) continue;
    if (!status) follower->process.send(SIGKILL);  // what it has sent so far is recorded
    tell_rest(*follower, "it did not end within finish_timeout");
  }
  for (auto& follower : followers_) {
    // A process that it started may keep its output open.
    if (!follower->ended(Clock::now() + std::chrono::milliseconds(kLeave_ms))) static_cast<void>(follower.release());
  }
  followers_.clear();
  if (!late.empty()) store::checkpoint_wal(run_dir_);  // a process killed while reading leaves it open
}

void Tracking::tell_rest(const Follower& follower, const std::string& why) const {
  core::log_warning("tracker " + follower.name + " is incomplete" + (why.empty() ? "" : ", " + why) + ": `roux sync " +
                    run_dir_ + " --tracker " + follower.name + "` sends the rest");
}

void warn_of_missing_servers(Session& session, const resolve::Recipe& recipe) {
  const core::Node* trackers = recipe.root.find("trackers");
  if (trackers == nullptr || !trackers->is_sequence()) return;
  core::Diagnostics diagnostics;
  for (const core::Node& tracker : trackers->items()) {
    const core::Node *type = tracker.find("type"), *given = tracker.find("tracking_uri");
    if (type == nullptr || !type->is_string() || type->as_string() != "mlflow") continue;
    const char* variable = std::getenv("MLFLOW_TRACKING_URI");
    const std::string uri = given != nullptr && given->is_string() ? given->as_string() : variable ? variable : "";
    if (uri.starts_with("http://") || uri.starts_with("https://")) continue;
    diagnostics.warning(
        tracker.location(),
        uri.empty() ? "no MLflow server is set" : "MLFLOW_TRACKING_URI is not the address of a server",
        "set MLFLOW_TRACKING_URI or tracking_uri to http://HOST:PORT; `roux sync` sends later what was missed");
  }
  session.show(diagnostics);
}

}  // namespace runner::cli
