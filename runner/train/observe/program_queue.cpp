#include "runner/train/observe/program_queue.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/process.h"
#include "runner/core/platform/program_path.h"
#include "runner/core/platform/run_async.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/train/observe/program_environment.h"

namespace runner::train {
namespace {

using core::Node;
using core::Process;

constexpr double kShortPatience_s = 5;
constexpr std::int64_t kLookMs = 50;         // whether the program has ended, or its time
constexpr std::int64_t kTermMs = 2'000;      // between SIGTERM and SIGKILL
constexpr std::size_t kLineBytesMax = 4096;  // a longer one comes in pieces

std::int64_t now_ns() { return core::system_clock().monotonic_ns(); }
double seconds_since(std::int64_t begin_ns) { return static_cast<double>(now_ns() - begin_ns) * 1e-9; }

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

std::string name_of(const components::callback::Program& program) {
  return core::escape_for_terminal(program.command.front());
}

std::string place_of(const components::callback::Program& program) {
  return program.event + " at step " + std::to_string(program.step);
}

}  // namespace

ProgramQueue::ProgramQueue(store::RunWriter& run, const Node& recipe)
    : run_(run),
      recipe_(recipe),
      enabled_(core::starts_programs().value_or(false)),
      log_(run.run_dir() + "/logs/commands.log") {}

ProgramQueue::~ProgramQueue() { finish(Patience::kShort); }

void ProgramQueue::start(Program program) {
  if (!enabled_) return;
  std::unique_lock lock(mutex_);
  const auto waiting = std::count_if(waiting_.begin(), waiting_.end(), [](const Program& one) { return !one.is_last; });
  if (!program.is_last && static_cast<std::size_t>(waiting) >= kWaitingMax) {
    return report(program, {.outcome = Outcome::kDropped});
  }
  waiting_.push_back(std::move(program));
  if (is_working_) return;
  is_working_ = true;
  lock.unlock();  // without a thread the work is done here
  working_ = core::run_async([this] { work(); });
}

void ProgramQueue::work() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    const Program program = std::move(waiting_.front());
    waiting_.pop_front();
    runs_last_ = program.is_last;
    running_timeout_s_ = program.timeout_s;
    lock.unlock();
    const Ended ended = run_one(program);
    lock.lock();
    gives_up_ = false;
    report(program, ended);
    changed_.notify_all();
  }
  is_working_ = false;
  changed_.notify_all();
}

ProgramQueue::Ended ProgramQueue::run_one(const Program& program) {
  const std::string file = core::find_program(program.command.front());
  if (file.empty()) return {.outcome = Outcome::kNotStarted, .why = "it is not found in PATH"};
  if (environment_.empty()) {
    environment_ = program_environment(recipe_);
    environment_["ROUX_RUN_DIR"] = absolute(run_.run_dir());
    environment_["ROUX_RUN_ID"] = run_.run_id();
  }
  Process::Start start{.command = program.command,
                       .environment = program.variables,
                       .lifetime = Process::Lifetime::kDiesWithChildren,
                       .inherits = Process::Inherits::kNothing};
  start.command.front() = file;
  start.environment.insert(environment_.begin(), environment_.end());
  const std::int64_t begin_ns = now_ns();
  log_.begin(place_of(program) + ": " + core::joined(program.command, " "));
  Ended ended;
  try {
    Process process(start);
    ended = wait_for(process, program);
  } catch (const core::RunError& error) {
    ended = {.outcome = Outcome::kNotStarted, .why = error.what()};
  }
  log_.end();
  ended.seconds = seconds_since(begin_ns);
  return ended;
}

ProgramQueue::Ended ProgramQueue::wait_for(Process& process, const Program& program) {
  if (const int error = process.start_error(); error != 0) {
    process.wait();
    return {.outcome = Outcome::kNotStarted, .why = core::lower(std::strerror(error))};
  }
  const std::int64_t begin_ns = now_ns();
  bool has_output = true;
  for (std::string line;;) {
    const auto read = process.read_line(line, has_output ? kLookMs : 0, kLineBytesMax);
    if (read == Process::Read::kLine) log_.line(line);
    if (read == Process::Read::kEnd && has_output) has_output = false;
    const bool is_over = seconds_since(begin_ns) > program.timeout_s;
    if (gives_up_ || is_over) {
      end(process);
      return {.outcome = is_over ? Outcome::kTimedOut : Outcome::kEnded};
    }
    if (read == Process::Read::kLine) continue;
    if (process.has_ended()) break;
    if (!has_output) std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  }
  process.send_to_all(SIGKILL);  // what it left running would be without a limit
  std::string line;
  for (std::int64_t lines = 0; lines < CommandLog::kProgramBytesMax; ++lines) {
    if (process.read_line(line, 0, kLineBytesMax) != Process::Read::kLine) break;
    log_.line(line);
  }
  const int status = process.wait();
  return {.outcome = status == 0 ? Outcome::kDone : Outcome::kFailed, .status = status};
}

void ProgramQueue::end(Process& process) {
  process.send_to_all(SIGTERM);
  const std::int64_t begin_ns = now_ns();
  for (std::string line; !process.has_ended() && now_ns() - begin_ns < kTermMs * 1'000'000;) {
    const auto read = process.read_line(line, kLookMs, kLineBytesMax);
    if (read == Process::Read::kLine) log_.line(line);
    if (read == Process::Read::kEnd) std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  }
  process.send_to_all(SIGKILL);
  process.wait();
}

void ProgramQueue::report(const Program& program, const Ended& ended) {
  static constexpr const char* kWords[] = {"done", "failed", "timed_out", "not_started", "ended", "dropped"};
  Node data = Node::mapping();
  data.set("event", Node::string(program.event));
  data.set("program", Node::string(program.command.front()));
  data.set("outcome", Node::string(kWords[static_cast<std::size_t>(ended.outcome)]));
  if (ended.outcome == Outcome::kDone || ended.outcome == Outcome::kFailed) {
    data.set("status", Node::integer(ended.status));
  }
  if (!ended.why.empty()) data.set("message", Node::string(ended.why));
  data.set("seconds", Node::floating(ended.seconds));
  run_.event("command", program.step, std::move(data));
  if (ended.outcome == Outcome::kDone) return;
  if (++troubles_[{program.command.front(), ended.outcome}] > 1) return;
  std::string what;
  switch (ended.outcome) {
    case Outcome::kDone: return;
    case Outcome::kFailed:
      what = "failed with status " + std::to_string(ended.status) + "; its output is in " +
             core::escape_for_terminal(log_.path());
      break;
    case Outcome::kTimedOut: what = "was ended after its timeout of " + core::format_duration(program.timeout_s); break;
    case Outcome::kNotStarted: what = "cannot be started: " + ended.why; break;
    case Outcome::kEnded: what = "was ended with the training"; break;
    case Outcome::kDropped: what = "was not started: others did not end in time"; break;
  }
  core::log_warning("command " + name_of(program) + " on " + place_of(program) + " " + what);
}

void ProgramQueue::drop(const std::function<bool(const Program&)>& which) {
  for (const Program& program : waiting_) {
    if (which(program)) report(program, {.outcome = Outcome::kDropped});
  }
  std::erase_if(waiting_, which);
}

/// False when patience came to its end first. `before_last`: what counts is that only last programs are left.
bool ProgramQueue::wait_until_idle(double seconds, bool before_last, const std::function<bool()>& interrupted) {
  const auto is_last = [](const Program& program) { return program.is_last; };
  const auto is_idle = [&] {
    if (!is_working_) return true;
    return before_last && runs_last_ && std::all_of(waiting_.begin(), waiting_.end(), is_last);
  };
  const std::int64_t begin_ns = now_ns();
  std::unique_lock lock(mutex_);
  while (!is_idle()) {
    if (seconds_since(begin_ns) >= seconds || (interrupted && interrupted())) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(kLookMs));
  }
  return true;
}

double ProgramQueue::longest_timeout_s() {
  const std::lock_guard lock(mutex_);
  double longest_s = running_timeout_s_;
  for (const Program& program : waiting_) {
    if (!program.is_last) longest_s = std::max(longest_s, program.timeout_s);
  }
  return longest_s;
}

void ProgramQueue::finish(Patience patience, const std::function<bool()>& interrupted) {
  const auto give_up = [this] {
    const std::lock_guard lock(mutex_);
    drop([](const Program&) { return true; });
    gives_up_ = is_working_;
  };
  if (patience == Patience::kTimeouts) {
    if (!wait_until_idle(longest_timeout_s(), true, interrupted)) {
      const std::lock_guard lock(mutex_);
      drop([](const Program& program) { return !program.is_last; });
    }
    // The one that runs and the last ones end by their own timeouts.
    if (!wait_until_idle(std::numeric_limits<double>::infinity(), false, interrupted)) give_up();
  } else if (!wait_until_idle(kShortPatience_s, false, {})) {
    give_up();
  }
  if (working_.valid()) working_.wait();
  tell_counts();
}

void ProgramQueue::tell_counts() {
  static constexpr const char* kWords[] = {"is done",  // not counted
                                           "failed",
                                           "was ended after its timeout",
                                           "could not be started",
                                           "was ended with the training",
                                           "was not started, as others did not end in time,"};
  for (const auto& [key, count] : troubles_) {
    if (count < 2) continue;
    core::log_warning("command " + core::escape_for_terminal(key.first) + " " +
                      kWords[static_cast<std::size_t>(key.second)] + " " + core::with_commas(count) + " times");
  }
  troubles_.clear();
}

}  // namespace runner::train
