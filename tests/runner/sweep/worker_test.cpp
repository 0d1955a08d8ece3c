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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "tests/support/process/postgres.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using runner::sweep::CrashNote;
using runner::sweep::Study;
using runner::sweep::Sweep;
using runner::sweep::Trainings;
using runner::sweep::TrialState;
using runner::sweep::Worker;

namespace {

/// Each look takes a tenth of a second.
class Hurried final : public runner::core::Clock {
 public:
  std::int64_t wall_ms() const override { return 1'700'000'000'000 + now_ms_; }
  std::int64_t monotonic_ns() const override { return (now_ms_ += 100) * 1'000'000; }
  std::int64_t now_ms() const { return now_ms_; }

 private:
  mutable std::int64_t now_ms_ = 0;
};

/// There is always an event: no wait.
struct AlwaysReady {
  AlwaysReady() = default;
  ~AlwaysReady() { close(descriptor); }
  AlwaysReady(const AlwaysReady&) = delete;
  AlwaysReady& operator=(const AlwaysReady&) = delete;

  int descriptor = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
};

/// There is room for this many at once, and one fails at each poll.
class Cramped final : public Trainings {
 public:
  struct Asked {
    const Hurried& clock;
    std::vector<std::int64_t> at_ms;
  };
  Cramped(std::size_t room, bool tells_later, Asked& asked) : room_(room), tells_later_(tells_later), asked_(asked) {}

  void start(std::int64_t trial, runner::sweep::Training) override {
    asked_.at_ms.push_back(asked_.clock.now_ms());
    if (running_.size() < room_) return running_.push_back(trial);
    if (!tells_later_) throw runner::core::RunError("no room");
    refused_.push_back({trial, 1, "", "no room"});
  }
  void send(std::int64_t, int) override {}
  std::vector<int> descriptors() const override { return {event_.descriptor}; }
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
  Asked& asked_;
  AlwaysReady event_;
  std::vector<std::int64_t> running_;
  std::vector<End> refused_;
};

/// A trial that goes on until it is told to save.
class Endless final : public Trainings {
 public:
  Endless(const Hurried& clock, std::int64_t& told_ms) : clock_(clock), told_ms_(told_ms) {}

  void start(std::int64_t, runner::sweep::Training) override {}
  void send(std::int64_t trial, int) override {
    told_ms_ = clock_.now_ms();
    ended_.push_back({trial, runner::core::kExitResumable, ""});
  }
  std::vector<int> descriptors() const override { return {event_.descriptor}; }
  std::vector<End> take_ended() override { return std::exchange(ended_, {}); }

 private:
  const Hurried& clock_;
  std::int64_t& told_ms_;
  AlwaysReady event_;
  std::vector<End> ended_;
};

/// Where nothing works.
class Broken final : public Trainings {
 public:
  void start(std::int64_t, runner::sweep::Training) override {}
  void send(std::int64_t, int) override {}
  std::vector<int> descriptors() const override { return {event_.descriptor}; }
  std::vector<End> take_ended() override { throw runner::core::RunError("the disk is gone"); }

 private:
  AlwaysReady event_;
};

/// The status of a process that does `work` without output and without the signal handlers of the tests.
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

struct Fixture {
  explicit Fixture(const std::string& more, const std::string& store = "") {
    runner::core::Diagnostics diagnostics;
    sweep = tests::read_sweep("  parameters: {vars.width: {values: [8, 16]}}\n" + more, diagnostics);
    INFO(runner::core::render(diagnostics));
    REQUIRE(sweep.has_value());
    runner::sweep::StudyInfo info;
    info.name = "tiny-0d8xhm4tq0a";
    info.store = store;
    info.lease_ms = 600'000;
    const std::string folder = dir / "sweeps/tiny-0d8xhm4tq0a";
    std::filesystem::create_directories(folder);
    study = Study::create(folder, info, clock).value();
  }

  Worker::End work(std::size_t room = 1, bool tells_later = false) {
    return work(std::make_unique<Cramped>(room, tells_later, asked));
  }
  Worker::End work(std::unique_ptr<Trainings> trainings) {
    Worker::Options options;
    options.trainings = std::move(trainings);
    options.say = options.warn = [this](const std::string& line) { lines.push_back(line); };
    options.waits_for_others = false;
    return Worker(*sweep, *study, std::move(options), clock).run();
  }

  tests::TempDir dir;
  Hurried clock;
  Cramped::Asked asked = {clock, {}};
  std::optional<Sweep> sweep;
  std::unique_ptr<Study> study;
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("where the system has no process for a trial it waits, and is tried again", "[sweep][worker]") {
  const bool tells_later = GENERATE(false, true);
  SECTION("for those that run") {
    Fixture test("  max_concurrent_trials: 2\n");
    CHECK(test.work(1, tells_later).failure.empty());
    CHECK(std::count(test.lines.begin(), test.lines.end(), "no room; retrying") == 1);
    for (const auto& trial : test.study->trials()) CHECK(trial.reason == "boom");  // its own end, and nothing else
    CHECK(test.study->trials().size() == 2);
  }
  SECTION("and the sweep stops where nothing runs that could leave room, after a while") {
    Fixture test("");
    CHECK(test.work(0, tells_later).failure == "no room");
    CHECK(test.study->trials().front().state == TrialState::kWaiting);
    const std::vector<std::int64_t>& asked_ms = test.asked.at_ms;
    REQUIRE(asked_ms.size() == 6);
    for (std::size_t i = 0; i + 1 < asked_ms.size(); ++i) CHECK(asked_ms[i + 1] - asked_ms[i] >= 1000 << i);
  }
}

TEST_CASE("that a disk is full says nothing of a trial", "[sweep][worker]") {
  for (const char* words :
       {"checkpoints need 1.0 GB in runs (one checkpoint), but only 28.7 KB are free",
        "cannot write runs/a/logs/rank-0.log: No space left on device", "runs/a/run.db: database or disk is full"}) {
    CHECK(runner::sweep::classify(std::nullopt, 1, words, {{"val/loss", false, false}}).kind ==
          runner::sweep::Outcome::Kind::kInterrupted);
  }
}

TEST_CASE("a process that exits before its end is recorded has not finished", "[sweep][worker]") {
  CHECK(runner::sweep::classify(std::nullopt, 0, "", {{"val/loss", false, false}}).kind ==
        runner::sweep::Outcome::Kind::kCrash);  // its run was taken away
  const tests::TempDir dir;
  runner::store::RunRecord run;
  run.run.run_dir = dir.path();
  run.run.status = runner::store::RunStatus::kCrashed;
  for (const int status : {0, 3, 75}) {
    const auto outcome = runner::sweep::classify(run, status, "", {{"val/loss", false, false}});
    CHECK(outcome.kind == runner::sweep::Outcome::Kind::kCrash);
    CHECK(outcome.reason == "it exited before its end, with status " + std::to_string(status));
  }
}

TEST_CASE("a process of a trial that a signal killed is a crash, which is tried again", "[sweep][worker]") {
  const auto outcome = runner::sweep::classify(std::nullopt, 1, "rank 1 (process 12) was killed by SIGKILL",
                                               {{"val/loss", false, false}});
  CHECK(outcome.kind == runner::sweep::Outcome::Kind::kCrash);
  CHECK(outcome.reason == "rank 1 (process 12) was killed by SIGKILL");
}

TEST_CASE("a limit of time is kept to a second or two", "[sweep][worker]") {
  Fixture test("  stop: {max_time: 3s, running: save}\n");
  std::int64_t told_ms = 0;
  CHECK(test.work(std::make_unique<Endless>(test.clock, told_ms)).limit == "max_time 3.0 s is over");
  CHECK(told_ms < 8000);  // a heartbeat comes after ten seconds; each look at the clock here takes a tenth
  CHECK(test.study->trials()[0].state == TrialState::kWaiting);
}

TEST_CASE("a worker that breaks off leaves its trials to others", "[sweep][worker][postgres]") {
  tests::Postgres server;
  Fixture test("", server.address());
  CHECK_THROWS_WITH(test.work(std::make_unique<Broken>()), "the disk is gone");
  CHECK_FALSE(test.study->has_workers());
  test.study->add_worker(test.study->now_ms());
  test.study->requeue_trials();
  CHECK(test.study->trials()[0].state == TrialState::kWaiting);
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
          raise(SIGSEGV);  // between two trainings: of none
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
  Fixture test("  failures: {crash: fail}\n  n_trials: 1\n  sampler: random\n");
  const std::string folder = test.study->folder();
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
  test.work();
  CHECK(test.lines == std::vector<std::string>{"trial 0 failed: ended by signal 11"});
  CHECK(test.asked.at_ms.empty());
}
