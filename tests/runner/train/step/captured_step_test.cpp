// Steps as graphs of the pretended accelerator (ctest: accelerator).

#include "runner/train/step/captured_step.h"

#include <ATen/ops/nonzero.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

const std::vector<std::string> kGraphs = {"compile.cuda_graphs=true"};

/// Replays of the steps that `run` makes.
template <typename Run>
std::int64_t replays(const Run& run) {
  const std::int64_t before = accelerator::graph_replays();
  run();
  return accelerator::graph_replays() - before;
}

std::string spirals(const tests::TempDir& folder) {
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  return path;
}

/// A loss that does something else as well.
class OtherLoss final : public components::loss::Loss {
 public:
  OtherLoss(std::shared_ptr<Loss> inner, std::function<void(const at::Tensor&)> also)
      : inner_(std::move(inner)), also_(std::move(also)) {}
  at::Tensor sum_of(const components::TensorMap& tensors) const override {
    at::Tensor sum = inner_->sum(tensors);
    also_(sum.detach());
    return sum;
  }
  std::int64_t count(const components::TensorMap& batch) const override { return inner_->count(batch); }
  bool count_is_static() const override { return inner_->count_is_static(); }
  std::optional<std::int64_t> ignore_index() const override { return inner_->ignore_index(); }

 private:
  std::shared_ptr<Loss> inner_;
  std::function<void(const at::Tensor&)> also_;
};

/// The error of a training with a graph whose loss does this, too.
std::string error_with(const std::function<void(const at::Tensor&)>& also) {
  const tests::TempDir folder;
  Trained trained = build_on(kFirst, spirals(folder), with(kGraphs, {"training.fused_kernels=false"}));
  trained.experiment->loss = std::make_shared<OtherLoss>(trained.experiment->loss, also);
  const auto run = tests::new_run(folder.path());
  try {
    tests::train_quietly(*trained.experiment, *run);
  } catch (const core::RunError& error) {
    run->finish(store::RunStatus::kFailed, "");
    CHECK(error.hint() == "remove compile.cuda_graphs");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("smoke recipes have the same losses with a graph", "[.][accelerator]") {
  for (const std::string name : {"gpt", "images", "spirals", "table", "weight_average"}) {
    DYNAMIC_SECTION(name) {
      const tests::TempDir folder;
      const std::string path = "recipes/smoke/" + name + ".yaml";
      const Trained without = train_on(kFirst, path, kTwentySteps, folder);
      Trained captured;
      // All but the first ones and, where an epoch does not divide, the last ones of an epoch.
      CHECK(replays([&] { captured = train_on(kFirst, path, with(kTwentySteps, kGraphs), folder); }) >= 11);
      check_close(without, captured, 1e-6);  // a rate is rounded to float32
    }
  }
}

TEST_CASE("whatever a graph holds trains as without it", "[.][accelerator]") {
  struct Case {
    const char* name;
    std::vector<std::string> sets;
    double tolerance = 1e-5;
  };
  const std::vector<Case> cases = {
      {"dropout", {"model.dropout=0.3"}},
      {"adam", {"optimizer={type: adam, lr: 1.0e-2, amsgrad: true}"}},
      {"sgd", {"optimizer={type: sgd, lr: 1.0e-2, momentum: 0.9}"}},
      {"groups with rates of their own",
       {"optimizer={type: adamw, lr: 1.0e-2, no_decay: [bias], param_groups: [{pattern: '*.weight', lr: 2.0e-2}]}"}},
      {"a rate that moves", {"lr_scheduler={type: cosine, warmup_steps: 5}"}},
      {"without clipping", {"training.clip_grad_norm=null"}},
      {"clipped values", {"training.clip_grad_norm=null", "training.clip_grad_value=0.01"}},
      {"micro-batches", {"training.micro_batch_size=4", "training.gradient_accumulation_steps=3"}},
      {"the mean of the micro-batches' means",
       {"training.micro_batch_size=4", "training.gradient_accumulation_steps=3", "accumulation.mean=micro_batches"}},
      {"without a check", {"faults.on_nan=ignore"}},
      {"bfloat16", {"precision=bf16-mixed"}, 2e-2},
      {"blocking copies", {"loader.pin_memory=false"}},
      {"memory that may run out", {"training.auto_micro_batch=halve"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir folder;
      const std::string path = spirals(folder);
      const auto sets = with({"training.max_steps=24", "data.train.num_samples=76"}, c.sets);
      const Trained without = train_on(kFirst, path, sets, folder);
      Trained captured;
      CHECK(replays([&] { captured = train_on(kFirst, path, with(sets, kGraphs), folder); }) >= 14);
      check_close(without, captured, c.tolerance);
    }
  }
}

TEST_CASE("a captured training resumes with the same bits", "[.][accelerator]") {
  const tests::TempDir folder, other;
  const std::string path = spirals(folder);
  const std::string stop = GENERATE(std::string("2"), std::string("7"), std::string("9"));
  const Trained whole = train_on(kFirst, path, with(kGraphs, {"checkpoint.save_steps=null"}), folder);
  const Trained half = train_on(kFirst, path, with(kGraphs, {"training.max_steps=" + stop}), other);
  const Trained resumed = train_on(kFirst, path, kGraphs, other, half.checkpoint);
  CHECK(tests::same_bits(*whole.experiment, *resumed.experiment));
}

TEST_CASE("a captured training with dropout resumes with the same random numbers", "[.][accelerator]") {
  const tests::TempDir folder, other;
  const std::string path = "recipes/smoke/gpt.yaml";  // it draws masks of its own for the CPU's kernels
  const auto sets = with(kTwentySteps, {"compile.cuda_graphs=true", "model.dropout=0.1", "lr_scheduler=constant"});
  const auto random_states = [](const Trained& trained) {
    return core::read_file(trained.checkpoint + "/random_states_0.safetensors", 1 << 20).value();
  };
  const Trained whole = train_on(kFirst, path, sets, folder);
  const Trained half = train_on(kFirst, path, with(sets, {"training.max_steps=7"}), other);
  const Trained resumed = train_on(kFirst, path, sets, other, half.checkpoint);
  CHECK(tests::same_bits(*whole.experiment, *resumed.experiment));
  CHECK(random_states(whole) == random_states(resumed));
}

TEST_CASE("the CPU reads no value between the steps of a graph", "[.][accelerator]") {
  const tests::TempDir folder;
  const auto reads = [&](int steps) {
    const std::int64_t before = accelerator::values_read();
    const Unwatched trained =
        train_unwatched(kFirst, "recipes/smoke/gpt.yaml",
                        with(kGraphs, {"training.max_steps=" + std::to_string(steps), "logging_steps=1000"}), folder);
    CHECK(trained.error.empty());
    return accelerator::values_read() - before;
  };
  const std::int64_t few = reads(10);
  CHECK(reads(20) == few);
}

TEST_CASE("what a graph cannot hold ends the run in the device's words", "[.][accelerator]") {
  const std::string begin = "the step cannot be captured: ";
  CHECK(error_with([](const at::Tensor& sum) { sum.item<float>(); }) ==
        begin + "CUDA error: operation not permitted when stream is capturing (a value is read)");
  CHECK(error_with([](const at::Tensor& sum) { sum.cpu(); }) ==
        begin + "CUDA error: operation not permitted when stream is capturing (a copy from or to the CPU)");
  CHECK(error_with([](const at::Tensor& sum) { at::nonzero(sum.unsqueeze(0)); }) ==
        begin +
            "CUDA error: operation not permitted when stream is capturing (aten::nonzero returns what depends on "
            "values)");
}

TEST_CASE("without memory for a graph the training continues without one", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = "recipes/smoke/gpt.yaml";
  accelerator::set_memory_limit(0);
  const Trained without = train_on(kFirst, path, kTwentySteps, folder);
  const std::int64_t peak = accelerator::memory_peak();
  Trained captured;
  // The gradients and inputs of a graph stay beside those of the other steps.
  accelerator::set_memory_limit(peak + accelerator::memory_held() + (32 << 10));
  CHECK(replays([&] { captured = train_on(kFirst, path, with(kTwentySteps, kGraphs), folder); }) == 0);
  accelerator::set_memory_limit(0);
  check_close(without, captured, 1e-6);
}

TEST_CASE("a loss that is not finite in a replay is told with its step, and moves no weight", "[.][accelerator]") {
  const tests::TempDir folder;
  std::string table = "x,y\n";
  for (int row = 0; row < 32; ++row) table += std::to_string(row) + (row == 13 ? ",1e30\n" : ",1\n");
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
training: {max_steps: 12, micro_batch_size: 2}
logging_steps: 1000
)")
      .value();
  const Unwatched captured = train_unwatched(kFirst, path, kGraphs, folder);
  const Unwatched before = train_unwatched(kFirst, path, with(kGraphs, {"training.max_steps=6"}), folder);
  CHECK(captured.error ==
        "the loss is inf at step 7; the first tensor that is not finite: the loss; it saw samples 12, 13 of "
        "data.train");
  REQUIRE(before.error.empty());
  CHECK(tests::same_bits(*captured.experiment, *before.experiment));
}

}  // namespace runner::train
