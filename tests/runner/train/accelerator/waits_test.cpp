// When the CPU waits for what another device computes.

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/platform/files.h"
#include "runner/store/run_reader.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

}  // namespace

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
      {"the first steps, where it is unset", {"logging_steps=null"}, 10},
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

}  // namespace runner::train
