#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "tests/support/disk/file_events.h"
#include "tests/support/process/process.h"
#include "tests/support/process/sweep_trials.h"
#include "tests/support/process/test_run.h"
#include "tests/support/sampling.h"

namespace {

using runner::core::Node;

// A trial takes a sixth of the time there. Where a signal has to find a sweep at work it is on the disk.
constexpr auto kMemory = tests::TempDir::On::kMemory;

constexpr const char* kRecipe = R"(run_name: swept
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adamw, lr: 0.01}
training: {max_steps: 40, micro_batch_size: 32}
checkpoint: {save_steps: 10}
eval: {eval_steps: 10}
sweep:
  sampler: {type: random, seed: 5}
  n_trials: 6
  parameters:
    optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}
    model.hidden: {values: [[4], [8]]}
)";

std::vector<std::string> undisturbed() {
  static const std::vector<std::string> list = [] {
    const tests::TestRun test(kRecipe, kMemory);
    REQUIRE(test.roux({"sweep", "run", "recipe.yaml"}).status == 0);
    return tests::trials_of(test);
  }();
  return list;
}

const std::vector<std::string> kEightTrials = {"sweep", "run", "recipe.yaml", "--n-trials", "8"};

/// With half of the trials stopped at each rung; by two, so that with eight trials one enters the best half of it late.
std::string halving() { return std::string(kRecipe) + "  pruner: {type: asha, min_steps: 10, reduction_factor: 2}\n"; }

const std::vector<std::string>& halved() {
  static const std::vector<std::string> list = [] {
    const tests::TestRun calm(halving(), kMemory);
    const auto ended = calm.roux(kEightTrials);
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    CHECK(ended.output.find(" pruned at step ") != std::string::npos);
    return tests::trials_of(calm);
  }();
  return list;
}

/// Processes that this one has started and that run.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(')');  // the name in parentheses may hold anything
    if (name_end == std::string::npos) continue;   // it has ended meanwhile
    std::istringstream rest(stat.substr(name_end + 1));
    std::string state;
    pid_t its_parent = 0;
    rest >> state >> its_parent;
    if (its_parent == parent && state != "Z") children.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return children;
}

/// What a process holds for itself, in kB; files that it has mapped do not count.
std::int64_t anonymous_kb(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string key; status >> key;) {
    std::int64_t kb = 0;
    if (key == "RssAnon:" && status >> kb) return kb;
  }
  FAIL("process " << process << " is gone");
  return 0;
}

}  // namespace

TEST_CASE("a sweep that was killed anywhere resumes to the same result", "[ranks][sweep]") {
  // Moments are counts of what is written below its runs; an undisturbed sweep comes to well above kMomentsMax.
  constexpr int kMomentsMax = 300;
  const int kills = tests::share_of(20);
  std::mt19937 random(tests::seed());
  for (int i = 0; i < kills; ++i) {
    const int moment = static_cast<int>(random() % kMomentsMax);
    const bool parent = i % 3 != 1, training = i % 3 != 0;
    DYNAMIC_SECTION("kill " << i << ", after " << moment << " writes:" << (parent ? " parent" : "")
                            << (training ? " training" : "")) {
      const tests::TestRun test(kRecipe, kMemory);
      std::filesystem::create_directory(test.path() / "runs");
      tests::FileEvents writes(test.path() / "runs");
      tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, test.environment(),
                           test.path().string());
      CHECK(writes.wait_for(moment));
      for (const pid_t origin : children_of(sweep.pid())) {
        for (const pid_t pid : children_of(origin)) {
          if (training) kill(pid, SIGKILL);
        }
      }
      if (parent) sweep.send(SIGKILL);
      sweep.wait();
      const bool has_begun = test.roux({"sweep", "show"}).status == 0;
      const auto again = has_begun ? test.roux({"sweep", "resume"}) : test.roux({"sweep", "run", "recipe.yaml"});
      INFO(sweep.output() << again.output);
      REQUIRE(again.status == 0);
      tests::check_nothing_is_lost_or_doubled(test, undisturbed());
    }
  }
}

TEST_CASE("two workers share a sweep, each trial has one", "[ranks][sweep]") {
  const tests::TestRun test(kRecipe);
  tests::Process first({tests::roux_program(), "sweep", "run", "recipe.yaml"}, test.environment(),
                       test.path().string());
  REQUIRE(first.wait_for("runs/sweeps/"));
  const auto second = test.roux({"sweep", "resume"});
  CHECK(second.status == 0);
  CHECK(first.wait() == 0);
  tests::check_nothing_is_lost_or_doubled(test, undisturbed());  // random draws do not depend on who ends first
}

TEST_CASE("of sweeps that are begun at once the first is that of all", "[ranks][sweep]") {
  const tests::TestRun test(kRecipe);
  std::filesystem::create_directories(test.path() / "runs/sweeps/swept-1qj5pbzaez7.new");  // of one that was killed
  std::vector<std::unique_ptr<tests::Process>> workers;
  for (int i = 0; i < 3; ++i) {  // with more trials than they come to before they are ended
    workers.push_back(std::make_unique<tests::Process>(
        std::vector<std::string>{tests::roux_program(), "sweep", "run", "recipe.yaml", "--n-trials", "100000"},
        test.environment(), test.path().string()));
  }
  for (const auto& worker : workers) CHECK(worker->wait_for("runs/sweeps/"));
  const auto sweeps = std::filesystem::directory_iterator(test.path() / "runs" / "sweeps");
  CHECK(std::distance(begin(sweeps), end(sweeps)) == 1);
}

TEST_CASE("a sweep outlives the process that its trials are forked from, and each of them", "[ranks][sweep]") {
  for (const bool trial : {false, true}) {
    DYNAMIC_SECTION((trial ? "a trial" : "their origin") << " is killed") {
      const tests::TestRun test(kRecipe);
      tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, test.environment(),
                           test.path().string());
      REQUIRE(sweep.wait_for("trial 0 "));
      const std::vector<pid_t> origin = children_of(sweep.pid());
      REQUIRE(origin.size() == 1);
      pid_t victim = origin.front();
      while (trial && victim == origin.front() && !children_of(sweep.pid()).empty()) {  // one is sure to begin
        if (const std::vector<pid_t> forks = children_of(origin.front()); !forks.empty()) victim = forks.front();
      }
      kill(victim, SIGKILL);
      CHECK(sweep.wait() == 0);
      INFO(sweep.output());
      tests::check_nothing_is_lost_or_doubled(test, undisturbed());
    }
  }
}

TEST_CASE("a stopped sweep drains, and resumes to the same bits whatever process its trials have", "[ranks][sweep]") {
  const auto stopped = [](const tests::TestRun& test, const std::string& isolation) {
    tests::Process sweep(
        {tests::roux_program(), "sweep", "run", "recipe.yaml", "--set", "sweep.isolation=" + isolation},
        test.environment(), test.path().string());
    REQUIRE(sweep.wait_for("trial 1 "));
    sweep.send(SIGINT);
    CHECK(sweep.wait() == 75);
  };
  const tests::TestRun test(kRecipe), none(kRecipe);
  stopped(test, "fork");
  // 300 MB of addresses are less than LibTorch's libraries take. It is tried again for half a minute, beside the rest.
  tests::Process limited({"bash", "-c", "ulimit -v 300000 && exec \"$0\" sweep resume", tests::roux_program()},
                         test.environment(), test.path().string());
  stopped(none, "none");
  REQUIRE(none.roux({"sweep", "resume"}).status == 0);
  tests::check_nothing_is_lost_or_doubled(none, undisturbed());
  for (const char* isolation : {"exec", "none"}) {
    CAPTURE(isolation);
    const tests::TestRun whole(kRecipe, kMemory);
    const auto sweep =
        whole.roux({"sweep", "run", "recipe.yaml", "--set", std::string("sweep.isolation=") + isolation});
    INFO(sweep.output);
    REQUIRE(sweep.status == 0);
    tests::check_nothing_is_lost_or_doubled(whole, undisturbed());
  }
  // Trials are no worse for a program that cannot be started for them.
  CHECK(limited.wait() == 1);
  INFO(limited.output());
  CHECK(limited.output().find("was stopped: the process that trials are forked from has ended: ") != std::string::npos);
  REQUIRE(test.roux({"sweep", "resume"}).status == 0);
  tests::check_nothing_is_lost_or_doubled(test, undisturbed());
}

TEST_CASE("the memory of a sweep does not grow with the trials that were trained", "[ranks][sweep]") {
  constexpr const char* kTiny = R"(run_name: tiny
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic, task: regression, num_samples: 8}, val: {type: synthetic, task: regression, num_samples: 8}}
loss: mse
optimizer: {type: sgd, lr: 0.01}
training: {max_steps: 1, micro_batch_size: 8}
checkpoint: {save_at_end: false}
sweep:
  sampler: {type: random, seed: 5}
  n_trials: 1000000  # it is still at work at every poll
  parameters: {optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}}
)";
  // What a sweep knows of a trial takes about 1.2 kB. Any leak of a trial would take more: the recipe that it is
  // trained by some 10 kB, its empty run.db 50 kB.
  constexpr std::int64_t kFirst = 100, kLast = 500, kEachMax_kb = 4;
  // So that pages which are not used go back at once, and count in fours of a kB.
  std::map<std::string, std::string> environment = tests::TestRun::environment();
  environment["MALLOC_CONF"] = "thp:never,dirty_decay_ms:0,muzzy_decay_ms:0";
  for (const char* isolation : {"fork", "none"}) {
    DYNAMIC_SECTION("isolation " << isolation) {
      const tests::TestRun test(kTiny, kMemory);
      tests::Process sweep(
          {tests::roux_program(), "sweep", "run", "recipe.yaml", "--set", std::string("sweep.isolation=") + isolation},
          environment, test.path().string());
      std::map<pid_t, std::int64_t> before;
      REQUIRE(sweep.wait_for("  " + std::to_string(kFirst) + " of "));
      std::vector<pid_t> processes = children_of(sweep.pid());  // what trials are forked from
      CHECK(processes.size() == (isolation == std::string("fork") ? 1 : 0));
      processes.push_back(sweep.pid());
      for (const pid_t process : processes) before[process] = anonymous_kb(process);
      REQUIRE(sweep.wait_for("  " + std::to_string(kLast) + " of "));
      for (const pid_t process : processes) {
        INFO((process == sweep.pid() ? "the sweep: " : "what trials are forked from: ") << before[process] << " kB");
        CHECK(anonymous_kb(process) - before[process] < kEachMax_kb * (kLast - kFirst));
      }
      sweep.send(SIGKILL);
    }
  }
}

TEST_CASE("failures are classed, and handled by their policies", "[ranks][sweep]") {
  const tests::TestRun test(kRecipe, kMemory);
  const auto sweep = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"sweep", "run",   "recipe.yaml",         "--new", "--sampler",
                                      "grid",  "--set", "sweep.n_trials=null", "--set", "~sweep.parameters"};
    words.insert(words.end(), more.begin(), more.end());
    return test.roux(words);
  };
  SECTION("a loss that is no number fails its trial alone") {
    const char* isolation = GENERATE("fork", "none");
    const auto ended = sweep({"optimizer.lr=0.01,1e30,0.1", "--set", std::string("sweep.isolation=") + isolation});
    INFO(ended.output);
    CHECK(ended.status == 0);
    CHECK(ended.output.find("trial 1 failed: the loss is nan at step") != std::string::npos);
    CHECK(ended.output.find("3 of 3 done") != std::string::npos);
  }
  SECTION("or stops the sweep") {
    const auto ended = sweep({"optimizer.lr=1e30,0.01", "--set", "sweep.failures.nan=stop"});
    CHECK(ended.status == 1);
    CHECK(ended.output.find("was stopped: trial 0 failed: the loss is nan at step") != std::string::npos);
  }
  SECTION("or fails the sweep where there is no other") {
    const auto ended = sweep({"optimizer.lr=1e30,1e31"});
    CHECK(ended.status == 1);
    CHECK(ended.output.find("error: no trial completed with a result") != std::string::npos);
  }
  SECTION("a wrong variant is found before the first trial") {
    const auto ended = sweep({"training.max_steps=4,0"});
    CHECK(ended.status == 2);
    CHECK(ended.output.find("training.max_steps must be at least 1, got 0, in the variant training.max_steps=0") !=
          std::string::npos);
    CHECK_FALSE(std::filesystem::exists(test.path() / "runs" / "sweeps"));
  }
}

TEST_CASE("real failures of a trial are classified, handled and reported", "[ranks][sweep]") {
  // Of the first SGD keeps nothing, so that what fits once fits always; 4096 activations a sample are 330 MB a layer,
  // 100,000 x 100,000 weights 40 GB.
  const tests::TestRun test(R"(run_name: faulty
model: {type: mlp, hidden: [8], out_features: 1}
data: {train: {type: synthetic, task: regression, num_samples: 20000}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 1, micro_batch_size: 20000}
checkpoint: {save_at_end: false}
sweep: {parameters: {model.hidden: {values: [[4096], [100000, 100000], [8]]}}}
)");
  const auto limited = [&](const std::string& more) {
    const std::string command = "ulimit -v 1400000 && exec \"$0\" sweep run recipe.yaml --new " + more;
    tests::Process process({"bash", "-c", command, tests::roux_program()}, tests::TestRun::environment(),
                           test.path().string());
    const int status = process.wait();
    return tests::TestRun::Ended{status, process.output()};
  };
  SECTION("memory: smaller micro-batches, and when those do not help either, nothing") {
    const auto ended = limited("");
    INFO(ended.output);
    CHECK(ended.status == 0);
    CHECK(ended.output.find("trial 0 restarts: step 1 does not fit into memory with micro-batches of 20000") !=
          std::string::npos);
    CHECK(ended.output.find("trial 1 restarts: the model's weights and their gradients alone take 80.0 GB") !=
          std::string::npos);
    CHECK(ended.output.find("trial 1 failed: the model's weights and their gradients alone take") != std::string::npos);
    CHECK(ended.output.find("3 of 3 done") != std::string::npos);
    const auto shown = test.roux({"sweep", "show"});
    CHECK(shown.output.find("1 failed") != std::string::npos);
    CHECK(shown.output.find("the model's weights and their gradients alone take") != std::string::npos);
  }
  SECTION("or it fails at once") {
    const auto ended = limited("--set sweep.failures.memory=fail");
    INFO(ended.output);
    CHECK(ended.status == 0);
    CHECK(ended.output.find("starts again") == std::string::npos);
    CHECK(ended.output.find("trial 0 failed: step 1 does not fit into memory") != std::string::npos);
  }
}

TEST_CASE("a trial that crashes each time fails after its retries", "[ranks][sweep]") {
  // Trial 0 is longer than any machine takes to send a signal.
  const tests::TestRun test(R"(run_name: crashing
model: {type: mlp, hidden: [8], out_features: 1}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 2, micro_batch_size: 32}
capture: {git: false}
sweep: {failures: {max_retries: 1}, parameters: {training.max_steps: {values: [1000000000, 2]}}}
)",
                            kMemory);
  tests::Process process({tests::roux_program(), "sweep", "run", "recipe.yaml"}, tests::TestRun::environment(),
                         test.path().string());
  REQUIRE(process.wait_for("sweep runs/sweeps/"));
  for (const char* next : {"trial 0 restarts: ended by signal 9", "trial 0 failed: ended by signal 9"}) {
    const auto owner = tests::owner_of_trial(test, "0");
    REQUIRE(owner.has_value());
    kill(static_cast<pid_t>(owner->pid), SIGKILL);
    CHECK(process.wait_for(next));
  }
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  CHECK(process.output().find("2 of 2 done") != std::string::npos);
}

TEST_CASE("a trial that meets `ulimit -f` fails with that reason, once", "[ranks][sweep]") {
  // The checkpoint of the wide one is larger.
  const tests::TestRun test(R"(run_name: large
model: {type: mlp, hidden: [8], out_features: 1}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 2, micro_batch_size: 32}
capture: {git: false}
sweep: {parameters: {model.hidden: {values: [[1000, 1000], [8]]}}}
)");
  tests::Process process({"bash", "-c", "ulimit -f 1000 && exec \"$0\" sweep run recipe.yaml", tests::roux_program()},
                         tests::TestRun::environment(), test.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  CHECK(process.output().find("restarts") == std::string::npos);
  CHECK(process.output().find("trial 0 failed: cannot write runs/large-") != std::string::npos);
  CHECK(process.output().find("2 of 2 done") != std::string::npos);
}

TEST_CASE("trials that were killed, or hang, resume from their checkpoints", "[ranks][sweep]") {
  // Long trials, so that a signal finds them, and more retries than a slow machine uses up.
  const std::vector<std::string> words = {"sweep",
                                          "run",
                                          "recipe.yaml",
                                          "--n-trials",
                                          "5",
                                          "--set",
                                          "training.max_steps=600",
                                          "--set",
                                          "eval.eval_steps=300",
                                          "--set",
                                          "sweep.failures={hang_timeout: 5s, max_retries: 1000}"};
  const tests::TestRun calm(kRecipe, kMemory), test(kRecipe, kMemory);
  REQUIRE(calm.roux(words).status == 0);
  std::vector<std::string> command = words;
  command.insert(command.begin(), tests::roux_program());
  tests::Process sweep(command, test.environment(), test.path().string());
  REQUIRE(sweep.wait_for("trial 0 "));
  const std::pair<const char*, int> signals[] = {{"1", SIGKILL}, {"2", SIGSEGV}, {"3", SIGABRT}, {"4", SIGSTOP}};
  std::vector<std::string> reasons;
  for (const auto& [trial, signal] : signals) {
    const auto owner = tests::owner_of_trial(test, trial);
    if (owner) kill(static_cast<pid_t>(owner->pid), signal);
    const std::string why = signal == SIGSTOP ? "no progress for 5.0 s" : "ended by signal " + std::to_string(signal);
    reasons.push_back("trial " + std::string(trial) + " restarts: " + why);
  }
  CHECK(sweep.wait() == 0);
  INFO(sweep.output());
  CHECK(tests::trials_of(test) == tests::trials_of(calm));
  // Where one was faster than its signal, all the other trials are no less to be there.
  for (const std::string& reason : reasons) {
    const std::string restarts = reason.substr(0, reason.find(':'));
    if (sweep.output().find(restarts) != std::string::npos)
      CHECK(sweep.output().find(reason) != std::string::npos);
    else
      WARN("no longer there for its signal: " << restarts);
  }
}

TEST_CASE("a variant that turns out wrong after all were checked stops the sweep, or fails alone", "[ranks][sweep]") {
  const std::string recipe = R"(run_name: missing
model: {type: mlp, hidden: [8]}
data: {train: {type: csv_table, path: here.csv, target: y}, val: {type: csv_table, path: here.csv, target: y}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 4, micro_batch_size: 2}
sweep:
  sampler: {type: list, points: [{data.train.path: here.csv, optimizer.lr: 1.0e+30}, {data.train.path: gone.csv, optimizer.lr: 0.1}, {data.train.path: here.csv, optimizer.lr: 0.1}]}
  failures: {nan: stop}
  parameters: {data.train.path: {values: [here.csv, gone.csv]}, optimizer.lr: {values: [1.0e+30, 0.1]}}
)";
  const tests::TestRun test(recipe);
  for (const char* file : {"here.csv", "gone.csv"}) test.write(file, "x,y\n1,2\n2,4\n3,6\n4,8\n");
  const auto begun = test.roux({"sweep", "run", "recipe.yaml"});  // stopped by its first trial
  INFO(begun.output);
  REQUIRE(begun.status == 1);
  std::filesystem::remove(test.path() / "gone.csv");
  const auto ended = test.roux({"sweep", "resume"});
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK(ended.output.find("was stopped: trial 1 failed: ") != std::string::npos);
  CHECK(ended.output.find("gone.csv") != std::string::npos);
  const auto rest = test.roux({"sweep", "resume"});
  INFO(rest.output);
  CHECK(rest.status == 0);
  CHECK(rest.output.find("3 of 3 done") != std::string::npos);
}

TEST_CASE("a trial is complete at its last step, also where that is counted in epochs", "[ranks][sweep]") {
  const tests::TestRun by_epochs(halving(), kMemory);
  std::vector<std::string> words = kEightTrials;
  words.insert(words.end(), {"--set", "training.max_steps=null", "--set", "training.max_epochs=20"});  // of two steps
  const auto ended = by_epochs.roux(words);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK(tests::trials_of(by_epochs) == halved());
}

TEST_CASE("trials are pruned at the same step and promoted from their checkpoints, however the sweep is disturbed",
          "[ranks][sweep]") {
  const tests::TestRun killed(halving(), kMemory), whole(kRecipe, kMemory);
  std::vector<std::string> command = kEightTrials;
  command.insert(command.begin(), tests::roux_program());
  for (const char* moment : {"runs/sweeps/", "trial 1 ", "trial 3 ", "trial 2 "}) {
    tests::Process sweep(command, killed.environment(), killed.path().string());
    sweep.wait_for(moment);  // where it has come by already the sweep ends in peace
    sweep.send(SIGKILL);
    sweep.wait();
  }
  REQUIRE(killed.roux(kEightTrials).status == 0);
  CHECK(tests::trials_of(killed) == halved());
  // What was stopped on the way came to the same in the end as what was not.
  REQUIRE(whole.roux(kEightTrials).status == 0);
  const auto of = [](const std::vector<std::string>& list, std::size_t trial) {
    return runner::core::parse_json(list[trial]).value();
  };
  const auto expected = tests::trials_of(whole);
  int complete = 0;
  for (std::size_t i = 0; i < halved().size(); ++i) {
    if (of(halved(), i).find("state")->as_string() != "complete") continue;
    ++complete;
    CHECK(halved()[i] == expected[i]);
  }
  CHECK(complete >= 1);
}

TEST_CASE("the lineage of a population's best member replays to the same bits", "[ranks][sweep][population]") {
  const std::string recipe = std::string(kRecipe).replace(std::string(kRecipe).find("  n_trials: 6"), 13,
                                                          "  population: {size: 3, interval: 10}") +
                             "lr_scheduler: cosine\n";
  const tests::TestRun calm(recipe, kMemory), killed(recipe, kMemory);
  const auto run = calm.roux({"sweep", "run", "recipe.yaml"});
  INFO(run.output);
  REQUIRE(run.status == 0);
  CHECK(run.output.find("12 of 12 done") != std::string::npos);
  const auto best = calm.roux({"sweep", "best"});
  INFO(best.output);
  CHECK(best.output.find("lineage\n    trial ") != std::string::npos);
  const auto replayed = calm.roux({"sweep", "replay"});
  INFO(replayed.output);
  CHECK(replayed.status == 0);
  std::size_t same = 0;
  for (std::size_t at = 0; (at = replayed.output.find("  bit-identical\n", at)) != std::string::npos; ++at) ++same;
  CHECK(same >= 2);
  // Who goes on as before is at each step what one that was trained in one piece is, rates of a cosine included.
  const tests::TestRun whole(std::string(kRecipe) + "lr_scheduler: cosine\n", kMemory);
  REQUIRE(whole.roux({"sweep", "run", "recipe.yaml", "--n-trials", "3"}).status == 0);
  const auto members = tests::trials_of(calm), straight = tests::trials_of(whole);
  const auto of = [](const std::string& trial, const char* key) {
    return *runner::core::parse_json(trial).value().find(key);
  };
  int unchanged = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    bool own = true;
    for (std::int64_t at = i + 9; at >= 3; at -= 3) {
      const Node from = of(members[static_cast<std::size_t>(at)], "from");
      own = own && from.as_integer() == at - 3;
    }
    if (!own) continue;
    ++unchanged;
    CHECK(of(members[static_cast<std::size_t>(i + 9)], "value").as_double() ==
          of(straight[static_cast<std::size_t>(i)], "value").as_double());
  }
  CHECK(unchanged >= 1);
  for (const char* moment : {"runs/sweeps/", "trial 1 ", "trial 5 ", "trial 8 "}) {
    tests::Process sweep({tests::roux_program(), "sweep", "run", "recipe.yaml"}, killed.environment(),
                         killed.path().string());
    sweep.wait_for(moment);
    sweep.send(SIGKILL);
    sweep.wait();
  }
  REQUIRE(killed.roux({"sweep", "run", "recipe.yaml"}).status == 0);
  CHECK(tests::trials_of(killed) == tests::trials_of(calm));
}

TEST_CASE("all processes of a trial prune it at the same step", "[ranks][sweep][processes]") {
  const std::string recipe = std::string(kRecipe) + "  pruner: {type: asha, min_steps: 10, reduction_factor: 2}\n";
  const std::vector<std::string> words = {"sweep", "run",   "recipe.yaml",           "--n-trials",
                                          "4",     "--set", "launch.num_processes=2"};
  const tests::TestRun once(recipe, kMemory), again(recipe, kMemory);
  const auto first = once.roux(words), second = again.roux(words);
  INFO(first.output);
  REQUIRE(first.status == 0);
  REQUIRE(second.status == 0);
  CHECK(first.output.find(" pruned at step 10") != std::string::npos);
  CHECK(tests::trials_of(once) == tests::trials_of(again));
}

TEST_CASE("BOHB: Hyperband gives up trials that TPE proposes, however the sweep is disturbed", "[ranks][sweep]") {
  const std::string recipe = std::string(kRecipe) + "  pruner: {type: hyperband, min_steps: 10, reduction_factor: 2}\n";
  const std::vector<std::string> words = {"sweep",
                                          "run",
                                          "recipe.yaml",
                                          "--n-trials",
                                          "10",
                                          "--set",
                                          "sweep.sampler={type: tpe, n_startup_trials: 4, seed: 2}"};
  const tests::TestRun calm(recipe, kMemory), killed(recipe, kMemory);
  const auto ended = calm.roux(words);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK(ended.output.find(" pruned at step ") != std::string::npos);
  std::vector<std::string> command = words;
  command.insert(command.begin(), tests::roux_program());
  for (const char* moment : {"trial 4 ", "trial 7 "}) {
    tests::Process sweep(command, killed.environment(), killed.path().string());
    sweep.wait_for(moment);
    sweep.send(SIGKILL);
    sweep.wait();
  }
  REQUIRE(killed.roux(words).status == 0);
  CHECK(tests::trials_of(killed) == tests::trials_of(calm));
}

TEST_CASE("a limit ends a sweep, a resume keeps it, and another limit continues the sweep", "[ranks][sweep]") {
  const tests::TestRun test(kRecipe, kMemory);
  const auto begun = test.roux({"sweep", "run", "recipe.yaml", "--set", "sweep.stop.max_steps=100"});
  INFO(begun.output);
  CHECK(begun.status == 0);
  CHECK(begun.output.find("no more trials are started: max_steps 100 is used up: 120") != std::string::npos);
  CHECK(begun.output.find("3 of 6 done") != std::string::npos);
  const auto resumed = test.roux({"sweep", "resume"});
  INFO(resumed.output);
  CHECK(resumed.status == 0);
  CHECK(resumed.output.find("no more trials are started: max_steps 100 is used up: 120") != std::string::npos);
  CHECK(tests::trials_of(test).size() == 3);
  CHECK(test.roux({"sweep", "show"}).output.find("ended: max_steps 100 is used up") != std::string::npos);
  REQUIRE(test.roux({"sweep", "run", "recipe.yaml"}).status == 0);
  CHECK(tests::trials_of(test) == undisturbed());
}

TEST_CASE("only the best checkpoints of a sweep are kept", "[ranks][sweep]") {
  const tests::TestRun test(kRecipe, kMemory);
  REQUIRE(test.roux({"sweep", "run", "recipe.yaml", "--set", "sweep.checkpoints.keep_best=2"}).status == 0);
  int with_checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test.path() / "runs")) {
    const auto folder = entry.path() / "checkpoints";
    if (std::filesystem::is_directory(folder) && !std::filesystem::is_empty(folder)) ++with_checkpoints;
  }
  CHECK(with_checkpoints == 2);
}
