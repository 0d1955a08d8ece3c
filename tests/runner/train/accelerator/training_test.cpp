// Training on a device other than the CPU, seen on the pretended one: the same losses, metrics and states. A program of
// its own (ctest: accelerator): the backend stays registered in the process.

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/device.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/core/platform/files.h"
#include "runner/resolve/recipe.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/train.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

void check_everything_is_on(const Experiment& experiment, const std::string& device) {
  for (const auto& tensors : {experiment.model->parameters(), experiment.model->buffers()}) {
    for (const auto& named : tensors) {
      INFO(named.name);
      CHECK(named.tensor.device().str() == device);
    }
  }
}

}  // namespace

TEST_CASE("smoke recipes train on another device as on the CPU", "[.][accelerator]") {
  for (const std::string& path : core::glob("recipes/smoke/*.yaml")) {
    DYNAMIC_SECTION(path) {
      const tests::TempDir folder;
      const Trained cpu = train_on(kCpu, path, kTwentySteps, folder);
      const std::int64_t before = accelerator::kernels_run();
      const Trained device = train_on(kFirst, path, kTwentySteps, folder);
      CHECK(accelerator::kernels_run() > before + 20);
      check_everything_is_on(*device.experiment, kFirst);
      check_close(cpu, device, 1e-5);
    }
  }
}

TEST_CASE("lower precision on another device stays close to the CPU", "[.][accelerator]") {
  for (const std::string mode : {"bf16-mixed", "bf16-true", "16-mixed"}) {
    for (const std::string name : {"gpt", "images"}) {
      DYNAMIC_SECTION(name << " in " << mode) {
        const tests::TempDir folder;
        const std::string path = "recipes/smoke/" + name + ".yaml";
        const auto sets = with(kTwentySteps, {"precision.mode=" + mode});
        const Trained cpu = train_on(kCpu, path, sets, folder);
        check_close(cpu, train_on(kFirst, path, sets, folder), 2e-2);
      }
    }
  }
}

TEST_CASE("every optimizer moves another device's weights as the CPU's", "[.][accelerator]") {
  for (const std::string type : {"adadelta",  "adafactor",  "adagrad",
                                 "adalomo",   "adam",       "adamax",
                                 "adamw",     "adamw_8bit", "adamw_schedule_free",
                                 "asgd",      "lamb",       "lion",
                                 "lion_8bit", "lomo",       "muon",
                                 "nadam",     "radam",      "rmsprop",
                                 "rprop",     "sgd",        "sgd_schedule_free"}) {
    DYNAMIC_SECTION(type) {
      const tests::TempDir folder;
      const std::string path = folder / "spirals.yaml";
      core::write_file_atomic(path, kSpirals).value();
      std::vector<std::string> sets = {"optimizer={type: " + type + ", lr: 3.0e-3}", "model.dropout=0",
                                       "weight_averaging=null"};
      // Large enough for 8 bits; their nearest codes follow the last bit of a gradient, so for a few steps.
      const bool is_8bit = type.ends_with("_8bit");
      if (is_8bit) sets.insert(sets.end(), {"model.hidden=[90, 90]", "training.max_steps=3"});
      const Trained cpu = train_on(kCpu, path, sets, folder);
      check_close(cpu, train_on(kFirst, path, sets, folder), is_8bit ? 1e-3 : 1e-4);
    }
  }
}

TEST_CASE("a run on another device resumes with the same bits", "[.][accelerator]") {
  const tests::TempDir folder, other;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const Trained whole = train_on(kFirst, path, {}, folder);
  const Trained half = train_on(kFirst, path, {"training.max_steps=6"}, other);
  REQUIRE(half.checkpoint.ends_with("step-000006"));
  SECTION("on the same device") {
    const Trained resumed = train_on(kFirst, path, {}, other, half.checkpoint);
    CHECK(tests::same_bits(*whole.experiment, *resumed.experiment));
  }
  SECTION("on another of its kind") {
    const Trained resumed = train_on(kSecond, path, {}, other, half.checkpoint);
    check_everything_is_on(*resumed.experiment, kSecond);
    CHECK(tests::same_bits(*whole.experiment, *resumed.experiment));
  }
}

TEST_CASE("programs are told the same of a training on another device", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const auto told_on = [&](const char* device, const std::string& checkpoint) {
    const std::string file = folder / (std::string(device) + ".txt");
    const Trained trained =
        train_on(device, path,
                 {"eval.eval_steps=8",
                  "callbacks=[{type: command, on: [save, load, epoch, evaluation, end], run: [sh, -c, "
                  "'echo $ROUX_EVENT $ROUX_STEP $ROUX_EPOCH >> \"$0\"', '" +
                      file + "']}]"},
                 folder, checkpoint);
    // When a save is complete depends on the disk, and not on the device.
    std::istringstream told(core::read_file(file, 1 << 20).value());
    std::multiset<std::string> lines;
    for (std::string line; std::getline(told, line);) lines.insert(line);
    return std::pair(lines, trained.checkpoint);
  };
  const auto [cpu, last] = told_on(kCpu, "");
  CHECK(cpu == std::multiset<std::string>{"save 6 0.8", "evaluation 8 1", "epoch 8 1",
                                          "evaluation 12 1.5333333333333332", "save 12 1.5333333333333332",
                                          "end 12 1.5333333333333332"});
  const auto [device, on_device] = told_on(kFirst, "");
  CHECK(device == cpu);
  const auto again = told_on(kSecond, on_device.substr(0, on_device.rfind('/')) + "/step-000006");
  CHECK(again.first.contains("load 6 0.8"));
  CHECK(again.first.size() == cpu.size());  // without the first save
}

TEST_CASE("ranks with a device each train as ranks on the CPU", "[.][accelerator]") {
  struct Case {
    const char *name, *recipe;
    std::vector<std::string> sets;
    double tolerance = 1e-5;
  };
  const std::vector<std::string> none;
  const std::vector<Case> cases = {
      {"gradients in buckets", "gpt", none},
      {"running statistics", "images", none, 1e-4},  // small differences grow in the norms
      {"an exchange for each micro-batch", "spirals", {"accumulation.sync_each_batch=true"}},
      {"gradients in bfloat16", "gpt", {"ddp.comm_hook=bf16"}, 2e-2},
      {"gradients of low rank",
       "gpt",
       {"ddp={comm_hook: power_sgd, comm_state_option: {start_power_sgd_iter: 4}}"},
       1e-3},
      {"steps in the backward pass", "gpt", {"optimizer={type: lomo, lr: 1.0e-3}", "training.clip_grad_norm=null"}},
      {"weights averaged at times", "gpt", {"local_sgd.local_sgd_steps=4"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir folder;
      const std::string path = std::string("recipes/smoke/") + c.recipe + ".yaml";
      const auto sets = with(kTwentySteps, c.sets);
      const Trained cpu = train_two_on(kCpu, path, sets, folder);
      check_close(cpu, train_two_on("pretend", path, sets, folder), c.tolerance);
    }
  }
}

TEST_CASE("ranks share the random numbers of the generators that the recipe names", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const auto drawn_alike = [&](const std::string& types) {
    std::vector<std::string> states;
    // Two epochs, in each of which both draw as often.
    train_two_on("pretend", path, {"data.train.num_samples=64", "training.max_steps=8", "loader.rng_types=" + types},
                 folder);
    for (const char* device : {kFirst, kSecond}) {
      states.push_back(components::RandomState::now(std::vector{c10::Device(device)}).bytes());
    }
    return states.front() == states.back();
  };
  CHECK_FALSE(drawn_alike("[generator, torch]"));
  CHECK(drawn_alike("[generator, cuda]"));
}

TEST_CASE("checkpoints move between devices", "[.][accelerator]") {
  const tests::TempDir folder, other;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const auto optimizer = GENERATE(std::string("adamw"), std::string("adamw_schedule_free"), std::string("nadam"));
  const std::vector<std::string> sets = {"model.dropout=0", "optimizer={type: " + optimizer + ", lr: 3.0e-3}",
                                         optimizer == "adamw" ? "weight_averaging.decay=0.8" : "weight_averaging=null"};
  const auto half = with(sets, {"training.max_steps=6"});
  const Trained whole = train_on(kCpu, path, sets, folder);
  for (const auto& [first, then] : {std::pair(kCpu, kFirst), std::pair(kFirst, kCpu)}) {
    DYNAMIC_SECTION(optimizer << " from " << first << " to " << then) {
      const Trained begun = train_on(first, path, half, other);
      Trained resumed = train_on(then, path, sets, other, begun.checkpoint);
      std::vector<std::pair<std::string, double>> all = begun.metrics;
      all.pop_back();  // the evaluation at the end of the first half, which the whole run has not made
      all.insert(all.end(), resumed.metrics.begin(), resumed.metrics.end());
      resumed.metrics = all;
      check_close(whole, resumed, 1e-4);
    }
  }
}

TEST_CASE("recomputed activations have the same dropout and noise on another device", "[.][accelerator]") {
  const std::string path = "recipes/smoke/gpt.yaml";
  const std::vector<std::string> sets = {"training.max_steps=4", "model.dropout=0.2", "training.neftune_noise_alpha=5"};
  const tests::TempDir folder;
  const Trained kept = train_on(kFirst, path, sets, folder);
  for (const std::string mode : {"full", "selective"}) {
    DYNAMIC_SECTION(mode) {
      const Trained again = train_on(kFirst, path, with(sets, {"activation_checkpointing.mode=" + mode}), folder);
      CHECK(tests::same_bits(*kept.experiment, *again.experiment));
    }
  }
}

TEST_CASE("stochastic rounding has the same bits on every device", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device = components::named_device(kSecond);
  at::Tensor source = at::randn({37, 5}) * 1e3;
  source[0][0] = std::numeric_limits<float>::infinity();
  source[1][1] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor expected = at::empty_like(source, at::kBFloat16), found = at::empty_like(expected, device);
  round_stochastically(source, expected, 0xFFFF'FFFF'1234'5678U, 0x8000'0001'0000'0007U, 3);
  round_stochastically(source.to(device), found, 0xFFFF'FFFF'1234'5678U, 0x8000'0001'0000'0007U, 3);
  CHECK(std::isnan(found.cpu()[1][1].item<float>()));
  CHECK(at::equal(at::nan_to_num(expected), at::nan_to_num(found.cpu())));
}

TEST_CASE("callbacks see what a model on another device predicts", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::vector<std::string> sets = {"training.max_steps=4", "eval.eval_steps=2"};
  SECTION("classes") {
    const std::string callbacks = "callbacks=[{type: predictions}, {type: confusion_matrix}, {type: histograms}]";
    const Trained cpu = train_on(kCpu, "recipes/smoke/spirals.yaml", with(sets, {callbacks}), folder);
    check_close(cpu, train_on(kFirst, "recipes/smoke/spirals.yaml", with(sets, {callbacks}), folder), 1e-5);
  }
  SECTION("text") {
    const std::string callbacks = "callbacks=[{type: predictions}, {type: sample_generation, prompt: The}]";
    const Trained cpu = train_on(kCpu, "recipes/smoke/gpt.yaml", with(sets, {callbacks}), folder);
    check_close(cpu, train_on(kFirst, "recipes/smoke/gpt.yaml", with(sets, {callbacks}), folder), 1e-5);
  }
}

}  // namespace runner::train
