// What a worker does where the system does not play along; trainings are pretended here.

#include "runner/sweep/worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
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

TEST_CASE("a training that ended well but left no run came to nothing", "[sweep][worker]") {
  const auto outcome = runner::sweep::judge(std::nullopt, 0, "", {{"val/loss", false, false}});
  CHECK(outcome.kind == runner::sweep::Outcome::Kind::kOther);
  CHECK(outcome.reason == "it came to its end, but its run is not there any more");
}

TEST_CASE("that a disk is full says nothing of a trial", "[sweep][worker]") {
  for (const char* words :
       {"checkpoints need 1.0 GB in runs (one checkpoint), but only 28.7 KB are free there",
        "cannot write runs/a/logs/rank-0.log: No space left on device", "runs/a/run.db: database or disk is full"}) {
    CHECK(runner::sweep::judge(std::nullopt, 1, words, {{"val/loss", false, false}}).kind ==
          runner::sweep::Outcome::Kind::kInterrupted);
  }
}

TEST_CASE("who leaves in the middle has not come to an end, whatever it says", "[sweep][worker]") {
  const tests::TempDir dir;
  runner::store::RunSummary run;
  run.run_dir = dir.path();
  run.status = runner::store::RunStatus::kCrashed;
  for (const int status : {0, 3, 75}) {
    const auto outcome = runner::sweep::judge(run, status, "", {{"val/loss", false, false}});
    CHECK(outcome.kind == runner::sweep::Outcome::Kind::kCrash);
    CHECK(outcome.reason == "it left in the middle, with exit status " + std::to_string(status));
  }
}
