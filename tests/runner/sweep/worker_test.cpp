// What a worker does where the system does not play along; trainings are pretended here.

#include "runner/sweep/worker.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using runner::sweep::CrashNote;
using runner::sweep::Study;
using runner::sweep::Trainings;
using runner::sweep::TrialState;
using runner::sweep::Worker;

namespace {

/// There is room for so many at once, and one ends each time that somebody looks, badly.
class Cramped final : public Trainings {
 public:
  Cramped(std::size_t room, bool tells_later)
      : room_(room), tells_later_(tells_later), event_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Cramped() override { close(event_); }

  void start(std::int64_t trial, const std::vector<std::string>&) override {
    if (running_.size() < room_) return running_.push_back(trial);
    if (!tells_later_) throw runner::core::RunError("no room");
    refused_.push_back({trial, 1, "", "no room"});
  }
  void send(std::int64_t, int) override {}
  std::vector<int> descriptors() const override { return {event_}; }  // there is always something to be seen
  std::vector<End> take_ended() override {
    std::vector<End> ended = std::exchange(refused_, {});
    if (running_.empty()) return ended;
    ended.push_back({running_.front(), 1, "boom"});
    running_.erase(running_.begin());
    return ended;
  }

 private:
  std::size_t room_;
  bool tells_later_;
  int event_;
  std::vector<std::int64_t> running_;
  std::vector<End> refused_;
};

/// The status of a process that does `work` with nobody to see it, and without the signal handlers of the tests.
int status_of(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
    for (const int signal : {SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("where the system has no process for a trial it waits for those that run", "[sweep][worker]") {
  runner::core::Diagnostics diagnostics;
  const auto sweep = tests::read_sweep(
      "  parameters: {optimizer.lr: {values: [0.1, 0.2, 0.3]}}\n  max_concurrent_trials: 2\n", diagnostics);
  REQUIRE(sweep.has_value());
  const tests::TempDir dir;
  const std::string folder = dir / "sweeps/tiny-1";
  std::filesystem::create_directories(folder);
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  info.recipe_json = "{}";
  const auto study = Study::create(folder, info).value();
  std::vector<std::string> warnings;
  const auto work = [&](std::size_t room, bool tells_later) {
    Worker::Options options;
    options.trainings = std::make_unique<Cramped>(room, tells_later);
    options.say = [](const std::string&) {};
    options.warn = [&warnings](const std::string& line) { warnings.push_back(line); };
    return Worker(*sweep, *study, std::move(options), runner::core::system_clock()).run();
  };
  const bool tells_later = GENERATE(false, true);
  const auto stopped = work(0, tells_later);
  CHECK(stopped.failure == "no room");
  CHECK(study->trials().front().state == TrialState::kWaiting);
  warnings.clear();
  const auto ended = work(1, tells_later);
  CHECK(ended.failure.empty());
  CHECK(warnings.front() == "no room; it waits for those that run");
  for (const auto& trial : study->trials()) CHECK(trial.reason == "boom");  // its own end, and nothing else
  CHECK(study->trials().size() == 3);
}

TEST_CASE("what takes a worker along leaves a note of the trial", "[sweep][worker]") {
  const tests::TempDir dir;
  const auto ended_by = [&dir](const std::function<void(CrashNote&)>& what) {
    return status_of([&] {
      CrashNote note(dir.path(), "a trial has ended this worker");
      note.begin(12, 3);
      what(note);
    });
  };
  CHECK(WTERMSIG(ended_by([](CrashNote&) { raise(SIGSEGV); })) == SIGSEGV);
  CHECK(CrashNote::status_of(dir.path(), 12, 3) == 128 + SIGSEGV);
  CHECK_FALSE(CrashNote::status_of(dir.path(), 12, 5).has_value());
  CHECK_FALSE(CrashNote::status_of(dir.path(), 13, 3).has_value());
  CHECK(WTERMSIG(ended_by([](CrashNote& note) {
          note.begin(13, 1);
          std::abort();
        })) == SIGABRT);
  CHECK(CrashNote::status_of(dir.path(), 13, 1) == 128 + SIGABRT);
  CHECK(WTERMSIG(ended_by([](CrashNote& note) {
          note.end();
          raise(SIGSEGV);  // between two trainings: nobody's
        })) == SIGSEGV);
  CHECK(WTERMSIG(ended_by([](CrashNote& note) {
          note.begin(14, 1);
          raise(SIGKILL);
        })) == SIGKILL);
  CHECK_FALSE(CrashNote::status_of(dir.path(), 14, 1).has_value());
  CHECK(WEXITSTATUS(ended_by([](CrashNote& note) {
          note.begin(15, 1);
          std::exit(3);
        })) == 3);
  CHECK(CrashNote::status_of(dir.path(), 15, 1) == 3);
}

TEST_CASE("a trial that ended its worker is handled by its policy", "[sweep][worker]") {
  runner::core::Diagnostics diagnostics;
  const auto sweep = tests::read_sweep(
      "  parameters: {vars.width: {values: [8, 16]}}\n  failures: {crash: fail}\n  n_trials: 1\n  sampler: random\n",
      diagnostics);
  REQUIRE(sweep.has_value());
  const tests::TempDir dir;
  const std::string folder = dir / "sweeps/tiny-1";
  std::filesystem::create_directories(folder);
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  const auto study = Study::create(folder, info).value();
  status_of([&folder] {  // in place of a worker that has claimed it, and trains it
    const auto lost = Study::open(folder).value();
    lost->add_worker(1);
    Study::Demand demand;
    demand.variants_max = 1;
    demand.propose = [](const auto&, const auto&) { return runner::sweep::Variant{0, {0}, "vars.width=8"}; };
    const auto trial = lost->claim(demand);
    CrashNote note(folder, "a trial has ended this worker");
    note.begin(trial->number, trial->claims);
    raise(SIGSEGV);
  });
  std::vector<std::string> lines;
  Worker::Options options;
  options.trainings = std::make_unique<Cramped>(0, false);  // starts nothing
  options.say = options.warn = [&lines](const std::string& line) { lines.push_back(line); };
  CHECK(Worker(*sweep, *study, std::move(options), runner::core::system_clock()).run().failure.empty());
  CHECK(lines == std::vector<std::string>{"trial 0 failed: ended by signal 11"});
}
