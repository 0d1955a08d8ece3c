#include "runner/sweep/worker.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
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

/// A machine that has no process to give.
class NoProcess final : public Trainings {
 public:
  NoProcess(const Hurried& clock, std::vector<std::int64_t>& asked_ms) : clock_(clock), asked_ms_(asked_ms) {}
  ~NoProcess() override { close(always_ready_); }

  void start(std::int64_t trial, const std::vector<std::string>&) override {
    asked_ms_.push_back(clock_.now_ms());
    ended_.push_back({trial, 1, "cannot start its process: Resource temporarily unavailable", false});
  }
  void send(std::int64_t, int) override {}
  std::vector<int> descriptors() const override { return {always_ready_}; }
  std::vector<End> take_ended() override { return std::exchange(ended_, {}); }

 private:
  const Hurried& clock_;
  std::vector<std::int64_t>& asked_ms_;
  std::vector<End> ended_;
  int always_ready_ = eventfd(1, EFD_CLOEXEC);
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

struct Place {
  explicit Place(const std::string& more) {
    runner::core::Diagnostics diagnostics;
    sweep = tests::read_sweep("  parameters: {vars.width: {values: [8, 16]}}\n" + more, diagnostics);
    INFO(runner::core::render(diagnostics));
    REQUIRE(sweep.has_value());
    runner::sweep::StudyInfo info;
    info.name = "tiny-0d8xhm4tq0a";
    const std::string folder = dir / "sweeps/tiny-0d8xhm4tq0a";
    std::filesystem::create_directories(folder);
    study = Study::create(folder, info).value();
  }

  Worker::End work() {
    Worker::Options options;
    options.trainings = std::make_unique<NoProcess>(clock, asked_ms);
    options.say = options.warn = [this](const std::string& line) { lines.push_back(line); };
    options.waits_for_others = false;
    return Worker(*sweep, *study, std::move(options), clock).run();
  }

  tests::TempDir dir;
  Hurried clock;
  std::optional<Sweep> sweep;
  std::unique_ptr<Study> study;
  std::vector<std::int64_t> asked_ms;
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("a trial for which there is no process is tried again, later each time", "[sweep][worker]") {
  Place place("  failures: {max_retries: 2}\n  n_trials: 1\n  sampler: random\n");
  CHECK(place.work().failure.empty());
  const std::string why = "cannot start its process: Resource temporarily unavailable";
  CHECK(place.lines == std::vector<std::string>{"trial 0 starts again: " + why, "trial 0 starts again: " + why,
                                                "trial 0 failed: " + why});
  CHECK(place.study->trials()[0].state == TrialState::kFailed);
  REQUIRE(place.asked_ms.size() == 3);
  CHECK(place.asked_ms[1] - place.asked_ms[0] >= 1000);
  CHECK(place.asked_ms[2] - place.asked_ms[1] >= 2000);
}

TEST_CASE("a lack of processes may end the sweep", "[sweep][worker]") {
  Place place("  failures: {crash: stop}\n");
  CHECK(place.work().failure == "trial 0 failed: cannot start its process: Resource temporarily unavailable");
  CHECK(place.asked_ms.size() == 1);
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
  Place place("  failures: {crash: fail}\n  n_trials: 1\n  sampler: random\n");
  const std::string folder = place.study->folder();
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
  place.work();
  CHECK(place.lines == std::vector<std::string>{"trial 0 failed: ended by signal 11"});
  CHECK(place.asked_ms.empty());
}
