#include <unistd.h>

#include <cerrno>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "runner/cli/commands.h"
#include "runner/cli/tracking.h"
#include "runner/core/clock.h"
#include "runner/core/end_signals.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/units.h"
#include "runner/registry/registry.h"
#include "runner/resolve/recipe.h"
#include "runner/review/tracker_status.h"
#include "runner/store/database/schema.h"
#include "runner/store/feed/cursors.h"
#include "runner/store/feed/tracker_lock.h"
#include "runner/store/run_reader.h"
#include "trackers/follow.h"

namespace runner::cli {
namespace {

constexpr int kLookMs = 100, kLooksForRecord = 300;
constexpr int kLeaveS = 10;

struct SyncFlags {
  std::string run = "last", tracker;
  bool follow = false, resync = false;
};

/// Waits until a signal. A tracker that blocks then has a few seconds to return; a second signal ends at once.
class UntilSignalled final : public trackers::Waiter {
 public:
  UntilSignalled() : shared_(std::make_shared<Shared>()) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : core::end_signals()) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // the reader of our output may be gone
    std::thread([signals, shared = shared_] { listen(signals, *shared); }).detach();
  }
  bool wait(std::int64_t ms) override {
    std::unique_lock lock(shared_->mutex);
    return !shared_->changed.wait_for(lock, std::chrono::milliseconds(ms), [this] { return shared_->leaving; });
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool leaving = false;
  };

  static void listen(const sigset_t& signals, Shared& shared) {
    while (sigwaitinfo(&signals, nullptr) < 0 && errno == EINTR) {  // stopped and continued
    }
    {
      const std::lock_guard lock(shared.mutex);
      shared.leaving = true;
    }
    shared.changed.notify_all();
    const timespec patience = {kLeaveS, 0};
    sigtimedwait(&signals, nullptr, &patience);
    _exit(core::kExitFailed);  // what was flushed is recorded
  }

  const std::shared_ptr<Shared> shared_;  // the thread may outlive this object
};

trackers::Run run_of(const store::RunSummary& summary) {
  trackers::Run run;
  run.dir = summary.run_dir;
  run.id = summary.id;
  run.name = summary.label.empty() ? summary.name : summary.label;
  run.project = summary.name;
  run.created_ms = summary.created_ms;
  run.config = summary.resolved;
  run.tags = summary.tags;
  if (const auto details = store::read_details(summary.run_dir)) run.command_line = details.value().command_line;
  return run;
}

/// With --follow, waits for a process that holds the lock: an earlier follower, or another `roux sync`.
core::Result<std::unique_ptr<store::TrackerLock>> locked(const trackers::Run& run, const std::string& name,
                                                         const SyncFlags& flags, trackers::Waiter& waiter) {
  auto lock = store::TrackerLock::take(run.dir, name);
  if (!lock && flags.follow) core::log_warning(lock.failure().message + "; waiting");
  while (!lock && flags.follow && waiter.wait(kLookMs)) lock = store::TrackerLock::take(run.dir, name);
  return lock;
}

/// Prints the effect on the tool.
void forget(const trackers::Run& run, const std::string& name, const core::Node& block, bool quiet) {
  store::Cursors(run.dir).forget(name);
  const registry::Fragment* fragment = registry::Registry::builtin().find("tracker", block.find("type")->as_string());
  RUNNER_ASSERT(fragment != nullptr, "a validated recipe names known trackers");
  if (!quiet) std::printf("%-16s %s\n", name.c_str(), fragment->resync.c_str());
}

void bring(const trackers::Run& run, const core::Node& block, const SyncFlags& flags, Session& session,
           trackers::Waiter& waiter) {
  const std::string name = review::tracker_name(block);
  const auto lock = locked(run, name, flags, waiter);
  if (!lock) {
    return session.fail((flags.follow ? "" : "tracker " + name + ": ") + lock.failure().message, lock.failure().hint,
                        core::kExitFailed);
  }
  if (flags.resync) forget(run, name, block, session.quiet);
  const auto tracker = trackers::build(block, {name});
  const trackers::FollowResult result =
      trackers::follow(run, *tracker, {name, flags.follow}, core::system_clock(), waiter);
  if (!result.problem.empty()) {
    return session.fail((flags.follow ? "" : "tracker " + name + ": ") + result.problem, result.hint,
                        core::kExitFailed);
  }
  if (session.quiet) return;
  std::printf("%-16s %s points%s\n", name.c_str(), core::format_count(static_cast<double>(result.points)).c_str(),
              result.rejected_points > 0
                  ? (", " + std::to_string(result.rejected_points) + " rejected and skipped").c_str()
                  : "");
}

bool has_record(const core::Result<store::RunSummary>& found) {
  return found && found.value().status != store::RunStatus::kUnreadable &&
         std::filesystem::exists(store::run_db_path(found.value().run_dir));
}

/// A follower may start before the record of its run exists.
core::Result<store::RunSummary> find_run(const cli::Session& session, const SyncFlags& flags,
                                         trackers::Waiter& waiter) {
  auto found = store::find_run(session.runs_dir(), flags.run, core::system_clock());
  for (int look = 0; flags.follow && !has_record(found) && look < kLooksForRecord; ++look) {
    if (!waiter.wait(kLookMs)) break;
    found = store::find_run(session.runs_dir(), flags.run, core::system_clock());
  }
  return found;
}

void sync(Session& session, const SyncFlags& flags) {
  UntilSignalled waiter;
  const auto found = find_run(session, flags, waiter);
  if (!found) return session.fail(found.failure().message, found.failure().hint);
  const store::RunSummary& summary = found.value();
  const std::string resolved = store::branch_file(summary.run_dir, "resolved.json");
  if (resolved.empty()) return session.fail("run " + summary.run_dir + " has no resolved.json");
  const auto recipe = session.load(resolved, {});
  if (!recipe) return;
  const trackers::Run run = run_of(summary);
  std::string names;
  bool any = false;
  for (const core::Node& block : recipe->at("trackers").items()) {
    const std::string name = review::tracker_name(block);
    names += (names.empty() ? "" : ", ") + name;
    if (!flags.tracker.empty() && flags.tracker != name) continue;
    any = true;
    bring(run, block, flags, session, waiter);
  }
  if (any) return;
  if (names.empty()) {
    return session.fail("run " + summary.run_dir + " has no trackers", "list them under `trackers` in the recipe");
  }
  session.fail("run " + summary.run_dir + " has no tracker called \"" + flags.tracker + "\"",
               "its trackers are " + names);
}

}  // namespace

void add_sync(Command app, Session& session) {
  auto flags = std::make_shared<SyncFlags>();
  Command command = app.add_subcommand("sync", "Send a run's trackers what they have missed");
  command.add_option("RUN", flags->run, "Run: id or a prefix of it, name, folder, or `last` (default)");
  command.add_option("--tracker", flags->tracker, "Sync only the tracker with this name or type").type_name("NAME");
  Option follow = command.add_flag("--follow", flags->follow, "Continue until the run ends, and retry after failures");
  command.add_flag("--resync", flags->resync, "Send everything again, for a tool that has lost it").excludes(follow);
  command  // the former name
      .add_flag_callback("--anew",
                         [&session, flags] {
                           flags->resync = true;
                           core::Diagnostics diagnostics;
                           diagnostics.notice({}, "--anew is read as --resync");
                           session.show(diagnostics);
                         })
      .group("")
      .excludes(follow);
  command.footer(
      "\nExamples:\n"
      "  roux sync last\n"
      "  roux sync quickstart --tracker tensorboard --follow\n"
      "  roux sync 3f2a --tracker mlflow --resync");
  command.callback([&session, flags] { session.command = [&session, flags] { sync(session, *flags); }; });
}

}  // namespace runner::cli
