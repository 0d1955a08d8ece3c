#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/sweep/study/study.h"
#include "runner/sweep/study/variant_summary.h"
#include "tests/support/sweeps.h"
#include "tests/support/temp_dir.h"

using runner::sweep::Study;
using runner::sweep::Trial;
using runner::sweep::TrialEnd;
using runner::sweep::TrialState;
using runner::sweep::Variant;

namespace {

std::unique_ptr<Study> new_study(const std::string& folder) {
  runner::sweep::StudyInfo info;
  info.name = "tiny-1";
  info.recipe_json = "{}";
  info.threads = 2;
  return Study::create(folder, info).value();
}

/// Variants of one number each.
Study::Demand demand(std::int64_t variants_max, std::int64_t replicates = 1) {
  Study::Demand demand;
  demand.now_ms = 7;
  demand.variants_max = variants_max;
  demand.replicates = replicates;
  demand.propose = [](const std::vector<Variant>& before, const std::vector<Trial>&) -> std::optional<Variant> {
    const auto number = static_cast<std::int64_t>(before.size());
    return Variant{number, {static_cast<double>(number)}, "x=" + std::to_string(number)};
  };
  return demand;
}

TrialEnd complete(double value) {
  TrialEnd end;
  end.value = value;
  end.others = {3 * value};
  end.step = 20;
  end.run = "run";
  end.curve = {{10, 2 * value}, {20, value}};
  return end;
}

}  // namespace

TEST_CASE("each trial is given to one worker, and what became of it is kept", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  const auto other = Study::open(dir.path()).value();
  CHECK(other->info().name == "tiny-1");
  CHECK(other->info().threads == 2);
  CHECK(study->add_worker(1) != other->add_worker(2));
  CHECK(study->claim(demand(2))->number == 0);
  CHECK(other->claim(demand(2))->number == 1);
  CHECK_FALSE(study->claim(demand(2)).has_value());

  study->end(0, complete(0.5), 9);
  const std::vector<Trial> trials = other->trials();
  CHECK(trials[0].state == TrialState::kComplete);
  CHECK(trials[0].value == 0.5);
  CHECK(trials[0].others == std::vector<double>{1.5});
  CHECK(trials[1].others.empty());
  CHECK(trials[0].ended_ms == 9);
  CHECK(trials[1].state == TrialState::kRunning);
  CHECK_FALSE(trials[1].value.has_value());
  CHECK(other->curve(0).size() == 2);
  CHECK(other->variants()[1].point == runner::sweep::Point{1.0});
}

TEST_CASE("what a worker left in the middle waits for another one", "[sweep][study]") {
  const tests::TempDir dir;
  auto lost = new_study(dir.path());
  const auto here = Study::open(dir.path()).value();
  lost->add_worker(1);
  here->add_worker(2);
  lost->claim(demand(5));
  here->claim(demand(5));
  here->requeue_trials();
  CHECK(here->trials()[0].state == TrialState::kRunning);
  CHECK(here->trials_snapshot()[0].state == TrialState::kRunning);
  lost.reset();  // and its lease with it
  CHECK(here->trials()[0].state == TrialState::kRunning);
  CHECK(here->trials_snapshot()[0].state == TrialState::kWaiting);
  CHECK(here->trials_snapshot()[1].state == TrialState::kRunning);
  here->requeue_trials();
  CHECK(here->trials()[0].state == TrialState::kWaiting);
  CHECK(here->trials()[1].state == TrialState::kRunning);
  CHECK_FALSE(here->running().empty());
  CHECK(here->claim(demand(5))->number == 0);  // before a new one
}

TEST_CASE("a worker presumed dead does not end a trial that another worker took over", "[sweep][study]") {
  const tests::TempDir dir;
  const auto asleep = new_study(dir.path());
  const auto awake = Study::open(dir.path()).value();
  asleep->add_worker(1);
  awake->add_worker(2);
  REQUIRE(asleep->claim(demand(5))->number == 0);
  // As if it ran on a host that is not heard of any more: its lease tells nothing here.
  std::filesystem::remove_all(dir / "workers/1");
  awake->requeue_trials();
  CHECK_FALSE(asleep->end(0, complete(0.5), 9));
  CHECK(awake->trials()[0].state == TrialState::kWaiting);
  REQUIRE(awake->claim(demand(5))->number == 0);
  CHECK_FALSE(asleep->end(0, complete(0.5), 9));
  CHECK(awake->end(0, complete(0.25), 9));
  CHECK(asleep->trials()[0].value == 0.25);
}

TEST_CASE("what is kept in memory follows what others write", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  const auto other = Study::open(dir.path()).value();
  study->add_worker(1);
  other->add_worker(2);
  CHECK(study->trials().empty());
  other->claim(demand(9));
  CHECK(study->trials().size() == 1);
  CHECK(study->curve(0).empty());
  other->end(0, complete(0.5), 9);
  other->claim(demand(9));
  REQUIRE(study->variants().size() == 2);
  CHECK(study->variants()[1].text == "x=1");
  CHECK(study->trials()[0].value == 0.5);
  CHECK(study->curve(0).size() == 2);
  CHECK(study->changes() == std::vector<std::int64_t>{0, 0, 1});  // variant 0 was seen to begin and to end
  const auto afresh = Study::open(dir.path()).value();
  CHECK(afresh->trials().size() == 2);
  CHECK(afresh->changes() == std::vector<std::int64_t>{0, 1});
  CHECK(study->claim(demand(9))->number == 2);
}

TEST_CASE("a variant that another worker made meanwhile is proposed again", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  const auto other = Study::open(dir.path()).value();
  study->add_worker(1);
  other->add_worker(2);
  Study::Demand thoughtful = demand(9);
  std::vector<std::size_t> asked;
  thoughtful.propose = [&, propose = thoughtful.propose](const std::vector<Variant>& before,
                                                         const std::vector<Trial>& trials) {
    asked.push_back(before.size());
    if (asked.size() == 1) CHECK(other->claim(demand(9))->number == 0);
    return propose(before, trials);
  };
  CHECK(study->claim(thoughtful)->number == 1);
  CHECK(asked == std::vector<std::size_t>{0, 1});
  CHECK(other->variants().size() == 2);
}

TEST_CASE("a trial that is to be started again comes first, and remembers what it has cost", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  study->add_worker(1);
  study->claim(demand(5));
  TrialEnd again;
  again.state = TrialState::kWaiting;
  again.costs_retry = true;
  again.shrink = true;
  again.reason = "memory is exhausted";
  study->end(0, again, 9);
  const auto trial = study->claim(demand(5));
  REQUIRE(trial.has_value());
  CHECK(trial->number == 0);
  CHECK(trial->retries == 1);
  CHECK(trial->shrink);
  CHECK(trial->reason == "memory is exhausted");
}

TEST_CASE("what a trial has spent counts all of its runs, and each of them once", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  study->add_worker(1);
  const auto end = [&](TrialState state, std::optional<runner::sweep::Spent> spent, bool starts_new_run) {
    REQUIRE(study->claim(demand(1)).has_value());
    TrialEnd end;
    end.state = state;
    end.spent = spent;
    end.starts_new_run = starts_new_run;
    study->end(0, end, 9);
    const auto& now = study->trials()[0].spent;
    return std::vector<std::int64_t>{now.steps, now.samples, now.tokens};
  };
  using Numbers = std::vector<std::int64_t>;
  CHECK(end(TrialState::kWaiting, {{30, 60, 600}}, true) == Numbers{30, 60, 600});     // failed, and restarts
  CHECK(end(TrialState::kWaiting, {{20, 40, 400}}, false) == Numbers{50, 100, 1000});  // was killed, and goes on
  CHECK(end(TrialState::kWaiting, std::nullopt, false) == Numbers{50, 100, 1000});     // had no run
  CHECK(end(TrialState::kWaiting, {{35, 70, 700}}, true) == Numbers{65, 130, 1300});
  CHECK(end(TrialState::kComplete, {{40, 80, 800}}, false) == Numbers{105, 210, 2100});
}

TEST_CASE("a reader of a study knows whether it has workers", "[sweep][study]") {
  const tests::TempDir dir;
  auto worker = new_study(dir.path());
  const auto other = Study::open(dir.path()).value();
  CHECK_FALSE(other->has_workers());
  worker->add_worker(1);
  CHECK(other->has_workers());
  worker.reset();  // and its lease with it
  CHECK_FALSE(other->has_workers());
}

TEST_CASE("variants are compared by the mean of their replicates", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  study->add_worker(1);
  for (const double value : {1.0, 2.0, 0.5, 3.0}) study->end(study->claim(demand(3, 2))->number, complete(value), 9);
  TrialEnd failed;
  failed.state = TrialState::kFailed;
  study->end(study->claim(demand(3, 2))->number, failed, 9);
  study->end(study->claim(demand(3, 2))->number, complete(0.1), 9);
  CHECK_FALSE(study->claim(demand(3, 2)).has_value());
  const auto summaries = summaries_of(study->variants(), study->trials());
  CHECK(summaries[0].value == 1.5);
  CHECK(summaries[1].value == 1.75);
  CHECK(summaries[2].state == TrialState::kFailed);

  runner::core::Diagnostics diagnostics;
  const auto sweep = tests::read_sweep("  parameters: {vars.width: {values: [8, 16]}}", diagnostics);
  CHECK(best_of(*sweep, summaries)->variant == 0);  // the third failed
}

TEST_CASE("a study with a deleted file is reported, and not written", "[sweep][study]") {
  const tests::TempDir dir;
  const auto study = new_study(dir.path());
  study->sync();
  std::filesystem::rename(dir / "sweep.db", dir / "elsewhere.db");
  CHECK_THROWS_WITH(study->sync(), dir / "sweep.db was moved or deleted while the sweep was at work");
}

TEST_CASE("a study in a folder that may only be read can be looked at", "[sweep][study]") {
  const tests::TempDir dir;
  {
    const auto study = new_study(dir.path());
    study->add_worker(1);
    REQUIRE(study->claim(demand(1)).has_value());
  }
  std::filesystem::permissions(dir.path(), std::filesystem::perms{0555});
  std::filesystem::permissions(dir / "sweep.db", std::filesystem::perms{0444});
  const pid_t reader = fork();
  if (reader == 0) {  // root may write everywhere, but this user may not
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);
    const auto study = Study::open(dir.path());
    if (!study) _exit(3);
    const bool is_seen = study.value()->trials().size() == 1;
    _exit(is_seen && !runner::core::attempt([&] { study.value()->add_worker(2); }) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(reader, &status, 0) == reader);
  std::filesystem::permissions(dir.path(), std::filesystem::perms{0755});
  CHECK(status == 0);
}

TEST_CASE("a loop over the running trials may end them", "[sweep][study]") {
  const tests::TempDir dir;
  const auto here = new_study(dir.path());
  here->add_worker(1);
  for (int i = 0; i < 3; ++i) REQUIRE(here->claim(demand(3)).has_value());
  const auto there = Study::open(dir.path()).value();
  there->trials();
  int seen = 0;
  for (const std::int64_t number : here->running()) {
    CHECK(there->end(number, complete(1), 9));
    CHECK(here->trials().at(static_cast<std::size_t>(number)).state == TrialState::kComplete);
    ++seen;
  }
  CHECK(seen == 3);
}
