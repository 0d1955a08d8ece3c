// A step that goes wrong: what each policy does with it, and that a killed and resumed run does the same.

#include <signal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/test_run.h"

namespace {

using tests::Process;
using tests::TestRun;

constexpr const char* kRecipe = R"(
run_name: faulty
seed: 3
model: {type: mlp, hidden: [16], dropout: 0.1}
data: {train: {type: csv_table, path: data.csv, target: y, normalize: false}}
loss: mse
optimizer: {type: adamw, lr: 1.0e-2}
lr_scheduler: {type: cosine, total_steps: 60}
loader: {shuffle: false}
training: {max_steps: 40, micro_batch_size: 4, gradient_accumulation_steps: 2}
checkpoint: {save_steps: 5}
logging_steps: 1
)";

constexpr int kRows = 400;
constexpr int kBadRow = 181;           // of the window of samples 176 to 183, which step 23 sees
constexpr const char* kHuge = "1e30";  // its square is beyond float32
constexpr const char* kJump = "3000";  // hundreds of deviations above the rest

/// y = a + 2b - 3c on a fixed lattice, with one row's target replaced; rows from `without` on are left out, 8 of them.
std::string table(const std::string& bad_target, int without = kRows) {
  std::string text = "a,b,c,y\n";
  for (int i = 0; i < kRows; ++i) {
    if (i >= without && i < without + 8) continue;
    const double a = std::sin(i * 1.0), b = std::cos(i * 2.0), c = std::sin(i * 3.0);
    const std::string y = i == kBadRow ? bad_target : std::to_string(a + 2 * b - 3 * c);
    text += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) + "," + y + "\n";
  }
  return text;
}

struct Fixture : TestRun {
  explicit Fixture(const std::string& data) : TestRun(kRecipe) { write("data.csv", data); }
  runner::store::RunDetails details() const {
    return std::move(runner::store::read_details(run_dir().string())).value();
  }
  std::vector<runner::store::EventRow> events(const std::string& kind) const {
    std::vector<runner::store::EventRow> found;
    for (auto& event : details().events) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }
  /// The losses of the current branch, by step.
  std::vector<std::pair<std::int64_t, double>> losses() const {
    std::vector<std::pair<std::int64_t, double>> points;
    const auto read = runner::store::read_series(run_dir().string(), "loss");
    for (const auto& point : read.value()) points.emplace_back(point.step, point.value);
    return points;
  }
};

/// A run with these settings, on the data without the samples of the bad step or on all of them; trained once.
const Fixture& trained(const std::vector<std::string>& settings, bool without_samples) {
  static std::map<std::vector<std::string>, Fixture> runs[2];
  const auto [found, is_new] = runs[without_samples].try_emplace(settings, table(kHuge, without_samples ? 176 : kRows));
  if (is_new) {
    const auto ended = found->second.run(settings);
    INFO(ended.output);
    REQUIRE(ended.status == 0);
  }
  return found->second;
}
const Fixture& trained_without_samples(const std::vector<std::string>& settings = {}) {
  return trained(settings, true);
}

}  // namespace

TEST_CASE("a loss that is not finite stops the run before the parameters move, and names its samples",
          "[ranks][faults]") {
  const Fixture test(table(kHuge));
  const auto ended = test.run();
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK(ended.output.find(
            "error: the loss is inf at step 23; the first tensor that is not finite: the loss; it saw "
            "samples 176, 177, 178, 179, 180, 181 and 2 more of data.train\n"
            "  hint: lower the learning rate, clip gradients, or skip such steps with faults.on_nan: skip") !=
        std::string::npos);
  CHECK(test.events("nan").size() == 1);
  CHECK(test.losses().size() == 22);
}

TEST_CASE("a skipped step leaves what a run on data without its samples leaves", "[ranks][faults]") {
  const Fixture skips(table(kHuge));
  const auto ended = skips.run({"faults.on_nan=skip"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK(ended.output.find("step 23 skipped: the loss is inf; it saw samples 176") != std::string::npos);
  const Fixture& without = trained_without_samples();
  tests::check_equal_checkpoints(skips, without, "step-000040");
  CHECK(skips.losses() == without.losses());
  const auto events = skips.events("skip");
  REQUIRE(events.size() == 1);
  CHECK(events[0].step == 23);
  CHECK(events[0].data.find("sample_count")->as_integer() == 8);
  CHECK(skips.details().branches.size() == 1);
}

TEST_CASE("a rollback opens a branch at the last checkpoint and leaves the named samples out", "[ranks][faults]") {
  const Fixture rolls(table(kHuge));
  const auto ended = rolls.run({"faults.on_nan=rollback"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  const Fixture& without = trained_without_samples();
  tests::check_equal_checkpoints(rolls, without, "step-000040");
  CHECK(rolls.losses() == without.losses());  // each step once
  const auto details = rolls.details();
  REQUIRE(details.branches.size() == 2);
  CHECK(details.branches[1].step == 20);
  CHECK(runner::store::read_series(rolls.run_dir().string(), "loss", "train", 0).value().size() == 22);
  CHECK(rolls.events("rollback").size() == 1);
}

TEST_CASE("a rollback passes over a damaged checkpoint, names it, and resumes from the newest that is whole",
          "[ranks][faults]") {
  const Fixture test(table(kHuge));
  // It ends, as a whole checkpoint, between the one that a rollback is planned to and the bad step.
  const std::vector<std::string> settings = {"faults.on_nan=rollback", "training.max_steps=22"};
  REQUIRE(test.run(settings).status == 0);
  const std::string checkpoints = (test.run_dir() / "checkpoints").string();
  std::filesystem::resize_file(checkpoints + "/step-000020/model.safetensors", 100);
  std::vector<std::string> command = test.command({"faults.on_nan=rollback"});
  command.insert(command.end(), {"--checkpoint", "last", "--allow-change", "training.max_steps"});
  Process process(command, TestRun::environment(), test.path().string());
  const int status = process.wait();
  INFO(process.output());
  REQUIRE(status == 0);
  CHECK(process.output().find("skipped " + std::filesystem::relative(checkpoints, test.path()).string() +
                              "/step-000020/model.safetensors holds 100 bytes, its manifest says ") !=
        std::string::npos);
  CHECK(process.output().find("/step-000022 without samples 176") != std::string::npos);
  const auto events = test.events("rollback");
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].data.find("skipped")->items().size() == 1);
  CHECK(test.losses().size() == 40);
}

TEST_CASE("a loss that jumps up is a spike, and skipping it leaves it out", "[ranks][faults]") {
  const Fixture skips(table(kJump));
  const auto ended = skips.run({"faults.on_spike=skip", "faults.spike_window=16"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK(ended.output.find("deviations above the mean of the last 16 steps") != std::string::npos);
  tests::check_equal_checkpoints(skips, trained_without_samples(), "step-000040");
  const Fixture ignores(table(kJump));
  REQUIRE(ignores.run().status == 0);
  CHECK(ignores.saved("step-000040", "model.safetensors") != skips.saved("step-000040", "model.safetensors"));
}

TEST_CASE("a spent budget fails the run", "[ranks][faults]") {
  const std::string policy = GENERATE("skip", "rollback");
  const Fixture test(table(kHuge));
  // Beyond step 4 every loss overflows: nothing that is left out helps.
  const auto ended = test.run({"faults.on_nan=" + policy, "faults.budget=3", "optimizer={type: sgd, lr: 1.0e+4}"});
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK(ended.output.find(", and faults.budget, 3 skips and rollbacks, is used up at step ") != std::string::npos);
  CHECK(test.events(policy).size() == 3);
  CHECK(runner::store::find_run((test.path() / "runs").string(), test.run_dir().string(), runner::core::system_clock())
            .value()
            .status == runner::store::RunStatus::kFailed);
}

TEST_CASE("a rollback that does not help reaches back further each time", "[ranks][faults]") {
  const Fixture test(table(kHuge));
  const auto ended = test.run(
      {"faults.on_nan=rollback", "faults.budget=4", "optimizer={type: sgd, lr: 1.0e+4}", "checkpoint.save_steps=1000"});
  INFO(ended.output);
  CHECK(ended.status == 1);
  std::vector<std::int64_t> left_out;
  for (const auto& event : test.events("rollback")) left_out.push_back(event.data.find("left_out_steps")->as_integer());
  REQUIRE(left_out.size() == 4);
  CHECK(left_out[0] == 1);
  CHECK(left_out[1] == 2);
  CHECK(left_out[2] >= left_out[1]);
}

TEST_CASE("a run that is killed after a bad step ends as one that is not", "[ranks][faults][resume]") {
  const std::string policy = GENERATE("skip", "rollback");
  const int signal = GENERATE(SIGKILL, SIGTERM);
  const std::vector<std::string> settings = {"faults.on_nan=" + policy, "faults.on_spike=" + policy,
                                             "faults.spike_window=8", "faults.rollback_skip_steps=3"};
  const Fixture& straight = trained(settings, false);
  const Fixture broken(table(kHuge));
  const char* const until = GENERATE("step-000010", "step-000020", "step 23", "step-000025");
  INFO(policy << " " << signal << " " << until);
  {
    Process process(broken.command(settings), TestRun::environment(), broken.path().string());
    REQUIRE(process.wait_for(until));
    process.send(signal);
    const int status = process.wait();
    CHECK((status == 0 || status == 75 || status == 128 + SIGKILL));  // 0: it was faster than the signal
    if (status != 0) {
      const auto ended = broken.run(settings);
      INFO(ended.output);
      REQUIRE(ended.status == 0);
    }
  }
  tests::check_equal_checkpoints(straight, broken, "step-000040");
  CHECK(straight.losses() == broken.losses());
}

TEST_CASE("a time limit stops with 75 again and again, and the end is that of one go", "[ranks][faults][time_limit]") {
  const std::vector<std::string> settings = {"training.max_steps=8", "checkpoint.save_steps=4"};
  const Fixture straight(table("0")), pieces(table("0"));
  REQUIRE(straight.run(settings).status == 0);
  std::vector<std::string> limited = settings;
  limited.insert(limited.end(), {"launch.time_limit=0.01s", "launch.save_margin=0s"});  // one step each time
  int processes = 1;
  auto ended = pieces.run(limited);
  for (; ended.status == 75 && processes < 20; ++processes) ended = pieces.run(limited);
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(processes == 8);
  tests::check_equal_checkpoints(straight, pieces, "step-000008");
  CHECK(straight.losses() == pieces.losses());
}

TEST_CASE("several processes judge a step together, and name the samples of the one that had them",
          "[ranks][faults][processes]") {
  const std::vector<std::string> both = {"launch.num_processes=2", "training.gradient_accumulation_steps=1"};
  const auto with = [&both](const std::string& policy) {
    std::vector<std::string> settings = both;
    settings.push_back("faults.on_nan=" + policy);
    return settings;
  };
  // The last four samples of the window are the second process's.
  const std::string culprit = "samples 180, 181, 182, 183 of data.train on rank 1";
  SECTION("stop") {
    const Fixture test(table(kHuge));
    const auto ended = test.run(both);
    INFO(ended.output);
    CHECK(ended.status == 1);
    CHECK(ended.output.find("the loss is inf at step 23; the first tensor that is not finite: the loss; it saw " +
                            culprit) != std::string::npos);
    CHECK(test.losses().size() == 22);
  }
  SECTION("skip, with an exchange that remembers what it left out") {
    auto settings = with("skip");
    settings.insert(settings.end(), {"model.hidden=[16, 16]", "ddp.comm_hook=power_sgd",
                                     "ddp.comm_state_option.start_power_sgd_iter=2"});
    const Fixture test(table(kHuge));
    const auto ended = test.run(settings);
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    // The gradient was huge and finite: what was left out of it spoils the next step, and is dropped with that one.
    CHECK(test.events("skip").size() == 2);
    CHECK(std::isfinite(test.losses().back().second));
  }
  SECTION("skip and roll back") {
    const std::string policy = GENERATE("skip", "rollback");
    CAPTURE(policy);
    const Fixture faulty(table(kHuge));
    const auto ended = faulty.run(with(policy));
    INFO(ended.output);
    REQUIRE(ended.status == 0);
    CHECK(ended.output.find(culprit) != std::string::npos);
    const Fixture& without = trained_without_samples(both);
    tests::check_equal_checkpoints(faulty, without, "step-000040");
    CHECK(faulty.losses() == without.losses());
    CHECK(faulty.events(policy).at(0).data.find("rank")->as_integer() == 1);
  }
}
