// How several processes exchange gradients: after each micro-batch, compressed, and from a checkpoint on.

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "runner/store/run_reader.h"
#include "tests/support/paths.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/test_run.h"

namespace {

namespace store = runner::store;

using tests::TestRun;

// 5 micro-batches a step: of 2 or 3 processes one makes fewer.
constexpr const char* kRecipe = R"(
run_name: exchange
seed: 5
model: {type: mlp, hidden: [24, 16]}
data: {train: {type: synthetic, task: regression, num_samples: 50}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 12, micro_batch_size: 2, global_batch_size: 10, clip_grad_norm: 1.0}
ddp: {bucket_cap_mb: 0.001}
checkpoint: {save_steps: 6}
logging_steps: 1
)";

/// A model that adapters can change.
const std::string kText = R"(
recipe_version: 1
run_name: text
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 16, dropout: 0.0}
data: {train: {type: text, path: )" +
                          tests::source_dir() + R"(/schemas/section/c*.json, max_seq_len: 16}}
loss: cross_entropy
optimizer: {type: adamw, lr: 0.01}
training: {max_steps: 12, global_batch_size: 12, micro_batch_size: 3}
logging_steps: 1
)";

std::vector<double> losses_of(const TestRun& test) {
  std::vector<double> losses;
  const auto points = store::read_series(test.run_dir().string(), "loss", "train", -1).value();
  for (const auto& point : points) losses.push_back(point.value);
  return losses;
}

std::vector<double> trained(const TestRun& test, const std::vector<std::string>& settings) {
  const auto ended = test.run(settings);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  const std::vector<double> losses = losses_of(test);
  REQUIRE(losses.size() == 12);
  return losses;
}

/// Losses of one process.
const std::vector<double>& losses_alone() {
  static const std::vector<double> losses = trained(TestRun(kRecipe), {});
  return losses;
}

/// Of a power_sgd that compresses from the third exchange on.
std::vector<std::string> power_sgd(const std::string& hook) {
  return {"launch.num_processes=2", "ddp.comm_hook=" + hook, "ddp.comm_state_option.start_power_sgd_iter=3",
          "ddp.comm_state_option.min_compression_rate=1"};
}

}  // namespace

TEST_CASE("exchanging after each micro-batch gives the same curve", "[ranks][exchange]") {
  const std::vector<double>& expected = losses_alone();
  for (const int count : {2, 3}) {
    CAPTURE(count);
    const TestRun together(kRecipe);
    const auto losses = trained(together, {"launch.num_processes=" + std::to_string(count),
                                           "accumulation.sync_each_batch=true", "ddp.check_reduction=true"});
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(losses[i] - expected[i]) <= 1e-5 * std::abs(expected[i]));
    }
  }
}

TEST_CASE("an adapter that several processes train is that of one", "[ranks][exchange]") {
  for (const char* more : {"use_dora: false", "use_dora: true, bias: all"}) {
    CAPTURE(more);
    const std::string adapters = "adapters=[{type: lora, r: 4, target_modules: all-linear, " + std::string(more) + "}]";
    const auto expected = trained(TestRun(kText), {adapters});
    const auto losses = trained(TestRun(kText), {adapters, "launch.num_processes=2", "ddp.check_reduction=true"});
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(losses[i] - expected[i]) <= 1e-5 * std::abs(expected[i]));
    }
  }
}

TEST_CASE("a compressed exchange trains nearly as a whole one does", "[ranks][exchange]") {
  const std::vector<double>& expected = losses_alone();
  const std::string hook = GENERATE("fp16", "bf16", "power_sgd", "batched_power_sgd");
  CAPTURE(hook);
  const TestRun together(kRecipe);
  const auto losses = trained(together, power_sgd(hook));
  CHECK(losses.front() == Approx(expected.front()).epsilon(1e-6));  // no gradient was used yet
  CHECK(losses.back() != expected.back());
  CHECK(losses.back() < losses.front());
}

TEST_CASE("one step by itself and then the mean is the step of all together", "[ranks][exchange]") {
  const TestRun exchanged(kRecipe), local(kRecipe);
  const std::vector<std::string> plain = {"launch.num_processes=2", "optimizer.type=sgd", "optimizer.lr=0.01",
                                          "training.clip_grad_norm=null"};
  auto settings = plain;
  settings.emplace_back("local_sgd.local_sgd_steps=1");
  const std::vector<double> expected = trained(exchanged, plain), losses = trained(local, settings);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(losses[i] - expected[i]) <= 1e-5 * std::abs(expected[i]));
  }
}

TEST_CASE("what each process remembers for itself is part of a checkpoint", "[ranks][exchange]") {
  const std::string which = GENERATE("power_sgd", "batched_power_sgd", "local_sgd");
  CAPTURE(which);
  const bool steps_alone = which == "local_sgd";
  // A save at step 6 waits for the mean after step 10; the training ends between two of them.
  const auto settings = steps_alone ? std::vector<std::string>{"launch.num_processes=3", "local_sgd.local_sgd_steps=5"}
                                    : power_sgd(which);
  const std::string middle = steps_alone ? "step-000010" : "step-000006";
  const TestRun straight(kRecipe), resumed(kRecipe);
  trained(straight, settings);
  std::filesystem::copy(straight.path() / "runs", resumed.path() / "runs", std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(resumed.run_dir() / "checkpoints" / "step-000012");
  const std::string run = resumed.run_dir().string();
  const std::vector<std::string> words = {tests::roux_program(), "resume", run, "--checkpoint", middle};
  tests::Process process(words, TestRun::environment(), resumed.path());
  const int status = process.wait();
  INFO(process.output());
  REQUIRE(status == 0);
  tests::check_equal_checkpoints(straight, resumed, "step-000012",
                                 {"model", "optimizer", steps_alone ? "local_sgd" : "ddp"});
}

TEST_CASE("what processes remember survives with more and with fewer of them", "[ranks][exchange]") {
  const std::string which = GENERATE("power_sgd", "batched_power_sgd", "local_sgd");
  CAPTURE(which);
  auto settings = which == "local_sgd" ? std::vector<std::string>{"local_sgd.local_sgd_steps=2"} : power_sgd(which);
  settings.insert(settings.end(), {"training.max_steps=6", "launch.num_processes=2"});
  const TestRun test(kRecipe);
  const auto begun = test.run(settings);
  INFO(begun.output);
  REQUIRE(begun.status == 0);
  int last = 6;
  for (const std::string& count : {std::string("3"), std::string("2")}) {
    last += 3;
    const auto ended =
        test.roux({"resume", test.run_dir().string(), "--checkpoint", "last", "--allow-change", "launch.num_processes",
                   "--set", "launch.num_processes=" + count, "--set", "training.max_steps=" + std::to_string(last)});
    INFO(ended.output);
    REQUIRE(ended.status == 0);
  }
  const std::vector<double> losses = losses_of(test);
  REQUIRE(losses.size() == 12);
  CHECK(losses.back() < losses.front());
}

TEST_CASE("an optimizer that steps in the backward pass moves by the gradients of all processes", "[ranks][exchange]") {
  const std::string type = GENERATE("lomo", "adalomo");
  const bool clips = GENERATE(false, true);  // which needs the norm of all gradients, from a pass before
  CAPTURE(type, clips);
  std::vector<std::string> settings = {"optimizer={type: " + type + ", lr: 1.0e-2}", "data.train.num_samples=47",
                                       "training.clip_grad_norm=" + std::string(clips ? "0.5" : "null"),
                                       "ddp.bucket_cap_mb=0.001", "ddp.find_unused_parameters=false"};
  const auto with_micro_batches = [&settings](int processes) {
    auto whole = settings;
    whole.push_back("training.micro_batch_size=" + std::to_string(10 / processes));
    whole.push_back("launch.num_processes=" + std::to_string(processes));
    return whole;
  };
  const TestRun alone(kRecipe);
  const std::vector<double> expected = trained(alone, with_micro_batches(1));
  for (const int count : {2, 5}) {  // of an epoch's last 7 samples 5 processes have 2, 2, 2, 1 and none
    CAPTURE(count);
    const TestRun together(kRecipe);
    const auto losses = trained(together, with_micro_batches(count));
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(losses[i] - expected[i]) <= 1e-5 * std::abs(expected[i]));
    }
  }
}
