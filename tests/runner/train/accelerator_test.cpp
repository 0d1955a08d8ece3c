// Training on a device other than the CPU, seen on the pretended one. A program of its own (ctest: accelerator): the
// backend stays registered in the process.

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/device.h"
#include "components/tensor/download.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/resolve/recipe.h"
#include "runner/store/run_reader.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/loop.h"
#include "runner/train/train.h"
#include "tests/support/process/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

/// Two ranks, with a device each unless it is the CPU. Its experiment and metrics are those of the first one.
Trained train_two_on(const std::string& device, const std::string& path, std::vector<std::string> sets,
                     const tests::TempDir& folder, const std::string& from = "") {
  sets.insert(sets.end(), {"logging_steps=1", "training.fused_kernels=false", "launch.num_processes=2"});
  std::vector<std::unique_ptr<Experiment>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::move(build_on(device, path, sets, rank).experiment));
  }
  // As train() does once the weights are drawn: from here on each rank has its own random numbers.
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (device == kCpu) break;
    at::Generator generator = at::globalContext().defaultGenerator(ranks[rank]->device);
    generator.set_current_seed(1 + rank);
  }
  auto watcher = std::make_shared<Watcher>();
  for (const auto& experiment : ranks) experiment->callbacks.push_back({"watcher", {}, std::make_shared<Watcher>()});
  ranks.front()->callbacks.back().callback = watcher;
  const auto run = tests::new_run(folder.path());
  tests::train_ranks(ranks, *run, from);
  Trained trained;
  CHECK(tests::same_bits(*ranks[0], *ranks[1]));
  CHECK((device == kCpu || ranks[0]->device != ranks[1]->device));
  trained.experiment = std::move(ranks.front());
  trained.metrics = watcher->seen;
  return trained;
}

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
  for (const std::string type :
       {"adadelta", "adafactor", "adagrad", "adalomo", "adam", "adamax", "adamw", "adamw_schedule_free", "asgd", "lamb",
        "lion", "lomo", "muon", "nadam", "radam", "rmsprop", "rprop", "sgd", "sgd_schedule_free"}) {
    DYNAMIC_SECTION(type) {
      const tests::TempDir folder;
      const std::string path = folder / "spirals.yaml";
      core::write_file_atomic(path, kSpirals).value();
      const std::vector<std::string> sets = {"optimizer={type: " + type + ", lr: 3.0e-3}", "model.dropout=0",
                                             "weight_averaging=null"};
      const Trained cpu = train_on(kCpu, path, sets, folder);
      check_close(cpu, train_on(kFirst, path, sets, folder), 1e-4);
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

TEST_CASE("micro-batches are copied aside, and waited for", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = "recipes/smoke/gpt.yaml";
  const auto unsaved = with(kTwentySteps, {"checkpoint={save_at_end: false}"});
  const Trained plain = train_on(kFirst, path, with(unsaved, {"loader.pin_memory=false"}), folder);
  const std::int64_t before = accelerator::late_copies(), unrecorded = accelerator::unrecorded_uses();
  const Trained blocking = train_on(kFirst, path, with(unsaved, {"loader.non_blocking=false"}), folder);
  CHECK(accelerator::late_copies() == before);
  const Trained aside = train_on(kFirst, path, unsaved, folder);
  CHECK(accelerator::late_copies() >= before + 40);  // inputs and targets
  CHECK(accelerator::unrecorded_uses() == unrecorded);
  CHECK(tests::same_bits(*plain.experiment, *blocking.experiment));
  CHECK(tests::same_bits(*plain.experiment, *aside.experiment));
}

TEST_CASE("a checkpoint is copied while the training continues, as the state was at its step", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const std::int64_t before = accelerator::late_copies(), unrecorded = accelerator::unrecorded_uses();
  const auto tensors_at_6 = [&path](const std::string& async_save) {
    const tests::TempDir runs;
    const Trained trained =
        train_on(kFirst, path, {"checkpoint.async_save=" + async_save, "loader.pin_memory=false"}, runs);
    const std::filesystem::path step_6 = std::filesystem::path(trained.checkpoint).parent_path() / "step-000006";
    std::map<std::string, std::string> files;
    for (const char* name : {"model", "optimizer", "weight_average", "random_states_0"}) {
      const std::string file = (step_6 / (std::string(name) + ".safetensors")).string();
      files[name] = core::read_file(file, 1 << 20).value();
    }
    return files;
  };
  const auto late = tensors_at_6("true");
  CHECK(accelerator::late_copies() >= before + 10);  // weights, two moments and the average, at least
  CHECK(accelerator::unrecorded_uses() == unrecorded);
  CHECK(late == tensors_at_6("false"));
}

TEST_CASE("the memory of a save is freed where graphs are captured", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  accelerator::install();
  const std::int64_t copies = accelerator::late_copies(), frees = accelerator::page_locked_frees_elsewhere();
  train_on(kFirst, path, {"checkpoint.save_steps=2", "loader.pin_memory=false"}, folder);
  CHECK(accelerator::late_copies() >= copies + 40);  // four tensors of each of five saves, at least twice as many
  CHECK(accelerator::page_locked_frees_elsewhere() == frees);
}

TEST_CASE("a download has the values of its moment", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device(kFirst);
  const at::Tensor there = at::ones({4}).to(device);
  components::Download download(device);
  const at::Tensor copy = download(there);
  download.end();
  CHECK(copy.is_pinned());
  CHECK(std::isnan(copy[0].item<float>()));  // the device has not made it yet
  SECTION("when it is waited for") {
    download.wait();
    CHECK(at::equal(copy, at::ones({4})));
  }
  SECTION("although the next kernel changes the tensor") {
    there.fill_(2.0);
    download.wait();
    CHECK(at::equal(copy, at::ones({4})));
    CHECK(there.sum().item<float>() == 8.0F);
  }
  SECTION("or the error of the device") {
    accelerator::fail_after(0, "CUDA error: unspecified launch failure");
    CHECK_THROWS_WITH(download.wait(), Catch::Contains("unspecified launch failure"));
    accelerator::fail_after(0, "");
  }
}

TEST_CASE("without page-locked memory a download waits for its copies", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device(kSecond);
  const at::Tensor there = at::ones({4}).to(device);
  const std::int64_t before = accelerator::late_copies();
  accelerator::refuse_page_locked_memory(true);
  components::Download download(device);
  const at::Tensor copy = download(there);
  accelerator::refuse_page_locked_memory(false);
  CHECK_FALSE(copy.is_pinned());
  CHECK(at::equal(copy, at::ones({4})));
  CHECK_FALSE(download(there).is_pinned());  // one warning is enough
  CHECK(accelerator::late_copies() == before);
}

namespace {

/// Events of this kind: the step, and the value under `key` or 0.
std::vector<std::pair<std::int64_t, double>> events_of(const Unwatched& trained, const std::string& kind,
                                                       const std::string& key = "") {
  std::vector<std::pair<std::int64_t, double>> found;
  const auto events = store::read_events(trained.run->run_dir());
  for (const auto& event : events.value()) {
    if (event.kind == kind) found.emplace_back(event.step, key.empty() ? 0 : event.data.find(key)->as_double());
  }
  return found;
}

std::vector<std::pair<std::int64_t, double>> series_of(const Unwatched& trained, const std::string& name) {
  std::vector<std::pair<std::int64_t, double>> points;
  const auto series = store::read_series(trained.run->run_dir(), name);
  for (const auto& point : series.value()) {
    points.emplace_back(point.step, point.value);
  }
  return points;
}

}  // namespace

TEST_CASE("the CPU waits for another device where it logs, or once a step", "[.][accelerator]") {
  struct Case {
    const char* name;
    std::vector<std::string> sets;
    std::int64_t reads;  // in ten further steps
  };
  const std::vector<Case> cases = {
      {"between two logged steps", {}, 0},
      {"accumulated", {"training.gradient_accumulation_steps=3"}, 0},
      {"without clipping", {"training.clip_grad_norm=null"}, 0},
      {"in bfloat16", {"precision.mode=bf16-mixed"}, 0},
      {"weights in bfloat16", {"precision.mode=bf16-true"}, 0},
      {"averaged weights", {"weight_averaging={type: ema, decay: 0.9}"}, 0},
      {"a callback of evaluations", {"callbacks=[{type: predictions, data: val}]"}, 0},
      {"sgd", {"optimizer={type: sgd, lr: 1.0e-2, momentum: 0.9}"}, 0},
      {"any optimizer, without a check", {"optimizer={type: lion, lr: 1.0e-3}", "faults.on_nan=ignore"}, 0},
      {"every fifth step", {"logging_steps=5"}, 2},
      {"every step", {"logging_steps=1"}, 10},
      {"an optimizer that cannot skip", {"optimizer={type: lion, lr: 1.0e-3}"}, 10},
      {"faults.on_nan", {"faults.on_nan=skip"}, 10},
      {"faults.on_spike", {"faults.on_spike=stop"}, 10},
      {"float16",
       {"precision={mode: 16-mixed, scaler: {init_scale: 1024}}", "training.gradient_accumulation_steps=3"},
       10},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir folder;
      const auto reads = [&](int steps) {
        const std::int64_t before = accelerator::values_read();
        const Unwatched trained = train_unwatched(
            kFirst, "recipes/smoke/gpt.yaml",
            with({"training.max_steps=" + std::to_string(steps), "logging_steps=1000"}, c.sets), folder);
        CHECK(trained.error.empty());
        return accelerator::values_read() - before;
      };
      const std::int64_t few = reads(10);
      CHECK(reads(20) - few == c.reads);
    }
  }
}

TEST_CASE("when losses are read changes no bit", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const auto mode = GENERATE(std::string("32-true"), std::string("bf16-true"));
  const auto trained = [&](const std::string& set) {
    return train_unwatched(kFirst, path, {"precision.mode=" + mode, "logging_steps=1000", set}, folder);
  };
  const Unwatched late = trained("logging_steps=1000");
  for (const std::string set : {"logging_steps=1", "logging_steps=5", "faults.on_nan=skip"}) {
    INFO(mode << ", " << set);
    const Unwatched other = trained(set);
    CHECK(tests::same_bits(*late.experiment, *other.experiment));
    CHECK(late.summary.find("loss")->as_double() == other.summary.find("loss")->as_double());
    CHECK(late.summary.find("grad_norm")->as_double() == other.summary.find("grad_norm")->as_double());
  }
}

TEST_CASE("a loss that is not finite between two logged steps is told with its step, and moves no weight",
          "[.][accelerator]") {
  const tests::TempDir folder;
  std::string table = "x,y\n";
  for (int row = 0; row < 16; ++row) table += std::to_string(row) + (row == 5 ? ",1e30\n" : ",1\n");
  core::write_file_atomic(folder / "table.csv", table).value();
  const std::string path = folder / "late.yaml";
  core::write_file_atomic(path,
                          "run_name: late\n"
                          "model: {type: mlp, hidden: [4], activation: tanh, dropout: 0.5}\n"
                          "data: {train: {type: csv_table, path: " +
                              folder / "table.csv" + R"(, target: y}}
loader: {shuffle: false}
loss: mse
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 8, micro_batch_size: 2}
logging_steps: 1000
)")
      .value();
  const std::string optimizer = GENERATE(std::string("adamw"), std::string("adam"), std::string("sgd"));
  const auto trained = [&](const std::string& device, const std::vector<std::string>& sets) {
    return train_unwatched(device, path, with({"optimizer={type: " + optimizer + ", lr: 1.0e-3}"}, sets), folder);
  };
  const Unwatched cpu = trained(kCpu, {}), device = trained(kFirst, {});
  const Unwatched before = trained(kFirst, {"training.max_steps=2"});
  CHECK(cpu.error ==
        "the loss is inf at step 3; the first tensor that is not finite: the loss; it saw samples 4, 5 of data.train");
  CHECK(device.error == cpu.error);
  CHECK(events_of(device, "nan") == std::vector<std::pair<std::int64_t, double>>{{3, 0.0}});
  REQUIRE(before.error.empty());
  CHECK(tests::same_bits(*device.experiment, *before.experiment));
  const Unwatched ignored = trained(kFirst, {"faults.on_nan=ignore", "checkpoint={save_at_end: false}"});
  CHECK(ignored.error.empty());
  CHECK_FALSE(tests::same_bits(*ignored.experiment, *before.experiment));
}

TEST_CASE("float16 gradients that overflow on another device skip the steps that they skip on the CPU",
          "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const std::vector<std::string> sets = {
      "precision={mode: 16-mixed, scaler: {init_scale: 24000000, growth_interval: 4}}", "model.dropout=0",
      "optimizer={type: sgd, lr: 5.0e-2, momentum: 0.9}", "logging_steps=1"};
  const Unwatched cpu = train_unwatched(kCpu, path, sets, folder), device = train_unwatched(kFirst, path, sets, folder);
  CHECK(cpu.error.empty());
  CHECK(device.error.empty());
  REQUIRE(events_of(cpu, "overflow").size() >= 3);
  for (const std::string key : {"loss_scale", "next_loss_scale"}) {
    CHECK(events_of(cpu, "overflow", key) == events_of(device, "overflow", key));
  }
  CHECK(series_of(cpu, "loss_scale") == series_of(device, "loss_scale"));
  const auto expected = cpu.experiment->model->parameters(), found = device.experiment->model->parameters();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(expected[i].name);
    CHECK(at::allclose(expected[i].tensor, found[i].tensor.cpu(), 1e-2, 1e-3));
  }
}

TEST_CASE("a copy that nothing waits for is seen", "[.][accelerator]") {
  accelerator::install();
  const c10::Device device(kFirst);
  const at::Tensor source = at::ones({4}).pin_memory();
  const c10::impl::VirtualGuardImpl guard(device.type());
  const c10::Stream side = guard.getNewStream(device);
  at::Tensor copied;
  {
    const c10::StreamGuard on(side);
    copied = source.to(device, at::kFloat, /*non_blocking=*/true);
  }
  CHECK(std::isnan(copied.sum().item<double>()));  // the event is missing
  c10::Event reached(device.type());
  reached.record(side);
  reached.block(guard.getStream(device));
  source.fill_(2.0);  // the CPU has not waited: the page-locked memory is reused too early
  CHECK(copied.sum().item<double>() == 8.0);
  const std::int64_t unrecorded = accelerator::unrecorded_uses();
  copied.reset();
  CHECK(accelerator::unrecorded_uses() == unrecorded + 1);  // the default stream read it
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

TEST_CASE("recomputed activations have the same dropout on another device", "[.][accelerator]") {
  const std::string path = "recipes/smoke/gpt.yaml";
  const std::vector<std::string> sets = {"training.max_steps=4", "model.dropout=0.2"};
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

TEST_CASE("a tensor on the wrong device is refused", "[.][accelerator]") {
  accelerator::install();
  const at::Tensor here = at::ones({4}), there = here.to(c10::Device(kFirst)),
                   elsewhere = here.to(c10::Device(kSecond));
  CHECK_THROWS_WITH(there + here, Catch::Contains("pretend:0 and cpu"));
  CHECK_THROWS_WITH(there + elsewhere, Catch::Contains("pretend:0 and pretend:1"));
  CHECK((there + 1).device() == there.device());

  const tests::TempDir folder;
  const Trained planted = build_on(kFirst, "recipes/smoke/spirals.yaml", {"training.max_steps=1"});
  const auto parameters = planted.experiment->model->parameters();
  parameters.front().tensor.set_data(parameters.front().tensor.detach().cpu());
  const auto run = tests::new_run(folder.path());
  CHECK_THROWS_WITH(tests::train_quietly(*planted.experiment, *run), Catch::Contains("on the same device"));
}

TEST_CASE("the CPU cannot read another device's memory", "[.][accelerator]") {
  accelerator::install();
  const at::Tensor there = at::ones({4}).to(c10::Device(kFirst));
  const auto* const value = static_cast<const float*>(there.const_data_ptr());
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    const volatile float read = *value;
    _exit(read > 0 ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
  CHECK(there.cpu()[0].item<float>() == 1.0F);
}

namespace {

/// By another process: a plan and the pretended accelerator extend LibTorch at the same place.
double planned_bytes(const std::string& path, const std::vector<std::string>& sets) {
  std::vector<std::string> command = {tests::roux_program(), "plan", path, "--format", "json"};
  command.insert(command.end(), sets.begin(), sets.end());
  tests::Process plan(command);
  REQUIRE(plan.wait() == 0);
  const std::string& output = plan.output();
  const std::size_t begin = output.find('{');
  const auto json = core::parse_json(output.substr(begin, output.rfind('}') + 1 - begin));
  return json.value().find("tensor_bytes")->as_double();
}

}  // namespace

TEST_CASE("a plan's memory is that of a training on another device", "[.][accelerator]") {
  struct Case {
    const char *name, *recipe;
    std::vector<std::string> sets;
  };
  const std::string model = "model={type: gpt, n_layer: 2, n_head: 4, n_embd: 256}", samples = "data.train.stride=4";
  const std::vector<Case> cases = {
      {"gpt", "gpt", {model, samples, "training.micro_batch_size=16"}},
      {"gpt in bfloat16", "gpt", {model, samples, "training.micro_batch_size=16", "precision.mode=bf16-mixed"}},
      {"gpt, accumulated",
       "gpt",
       {model, samples, "training.micro_batch_size=8", "training.gradient_accumulation_steps=3"}},
      {"gpt, recomputed",
       "gpt",
       {model, samples, "training.micro_batch_size=32", "activation_checkpointing.mode=full"}},
      {"images", "images", {"training.micro_batch_size=64"}},
      {"wide samples, accumulated",
       "images",
       {"model={type: sequential, layers: [flatten, {type: linear, out_features: 4}]}", "data.train.height=64",
        "data.train.width=64", "data.val.height=64", "data.val.width=64", "training.micro_batch_size=64",
        "training.gradient_accumulation_steps=8"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir folder;
      const std::string path = std::string("recipes/smoke/") + c.recipe + ".yaml";
      const auto sets = with(c.sets, {"training.max_steps=2", "training.max_epochs=null", "lr_scheduler=constant"});
      const double planned = planned_bytes(path, with(sets, {"device=cuda"}));
      accelerator::set_memory_limit(0);
      const std::int64_t before = accelerator::memory_peak();
      train_on(kFirst, path, sets, folder);
      const auto taken = static_cast<double>(accelerator::memory_peak() - before);
      INFO(planned << " planned, " << taken << " taken");
      CHECK(std::fabs(planned - taken) <= 0.1 * taken);
    }
  }
}

TEST_CASE("a plan for another device leaves out the masks of the CPU's attention", "[.][accelerator]") {
  const std::string gpt = "model={type: gpt, n_layer: 2, n_head: 8, n_embd: 64, dropout: ";
  const auto planned = [&gpt](const std::string& device, const std::string& dropout) {
    return planned_bytes("recipes/smoke/gpt.yaml",
                         {"device=" + device, gpt + dropout + "}", "data.train.max_seq_len=256", "data.train.stride=4",
                          "training.micro_batch_size=8", "training.max_steps=2", "training.max_epochs=null",
                          "training.fused_kernels=false", "lr_scheduler=constant"});
  };
  // The factors of one element of the stream each: of the embedding and of two branches in both blocks, in float32.
  const double factors = 5.0 * 8 * 256 * 64 * 4, attention = 2.0 * 8 * 8 * 256 * 256 * 4;
  CHECK(planned("cuda", "0.1") - planned("cuda", "0") <= 2 * factors);
  CHECK(planned("cpu", "0.1") - planned("cpu", "0") >= attention);
}

TEST_CASE("another device's memory runs out", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = "recipes/smoke/images.yaml";
  const std::vector<std::string> plain = {"training.max_steps=3", "training.micro_batch_size=32"};
  accelerator::install();
  accelerator::set_memory_limit(0);
  const std::size_t metrics = train_on(kFirst, path, plain, folder).metrics.size();
  const std::int64_t peak = accelerator::memory_peak();
  struct Restore {
    ~Restore() { accelerator::set_memory_limit(0); }
  } restore;
  accelerator::set_memory_limit(peak / 2);
  SECTION("and the error says so") {
    CHECK_THROWS_WITH(train_on(kFirst, path, plain, folder), Catch::Contains("does not fit into memory"));
  }
  SECTION("and smaller micro-batches are tried") {
    const Trained tight = train_on(kFirst, path, with(plain, {"training.auto_micro_batch=halve"}), folder);
    CHECK(accelerator::memory_peak() <= peak / 2);
    CHECK(tight.metrics.size() == metrics);
  }
}

TEST_CASE("an error of another device ends the run with its words", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const Trained planted = build_on(kFirst, path, {"checkpoint.save_steps=1"});
  const auto run = tests::new_run(folder.path());
  accelerator::fail_after(1500, "the device is lost");
  CHECK_THROWS_WITH(tests::train_quietly(*planted.experiment, *run), Catch::Contains("the device is lost"));
  accelerator::fail_after(0, "");
  CHECK(artifact::list_checkpoints(run->run_dir() + "/checkpoints").size() >= 1);
}

}  // namespace runner::train
