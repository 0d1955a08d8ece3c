// Checkpoints that are damaged behind the back of a training that counts on them.

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/error.h"
#include "runner/store/run_reader.h"
#include "tests/support/folder.h"
#include "tests/support/torch/counting_dataset_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace fs = std::filesystem;

using tests::experiment_of_recipe;
using tests::new_run;
using tests::train_quietly;

constexpr const char* kRecipe = R"(
recipe_version: 1
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: spirals, num_samples: 40, num_classes: 2}}
loss: cross_entropy
optimizer: {type: adamw, lr: 3.0e-2}
training: {max_steps: 12, micro_batch_size: 2}
checkpoint: {save_steps: 3}
faults: {on_nan: rollback}
logging_steps: 1
)";

/// Infinities in the batches with these numbers. `meanwhile` is called with each of them.
std::shared_ptr<tests::CountingDataset> bad_data(std::shared_ptr<components::data::Dataset> inner, std::vector<int> bad,
                                                 std::function<void(int)> meanwhile) {
  return std::make_shared<tests::CountingDataset>(
      std::move(inner),
      [bad = std::move(bad), meanwhile = std::move(meanwhile)](int number, components::TensorMap& batch) {
        if (std::find(bad.begin(), bad.end(), number) == bad.end()) return;
        meanwhile(number);
        for (const components::NamedTensor& item : batch.items()) {
          if (item.tensor.is_floating_point()) item.tensor.fill_(std::numeric_limits<double>::infinity());
        }
      });
}

std::vector<core::Node> rollbacks_of(const std::string& run_dir) {
  std::vector<core::Node> found;
  const auto details = store::read_details(run_dir);
  for (const store::EventRow& event : details.value().events) {
    if (event.kind == "rollback") found.push_back(event.data);
  }
  return found;
}

std::string name_in(const core::Node& event, const char* key) {
  return fs::path(event.find(key)->as_string()).filename().string();
}

}  // namespace

TEST_CASE("a rollback goes as far back as there is a whole checkpoint, and names those that are not",
          "[train][faults]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto experiment = experiment_of_recipe();
  const auto run = new_run("runs");
  const std::string checkpoints = run->run_dir() + "/checkpoints";
  // Step 8 goes back to step 6, which is committed then. So does step 8 when it comes again, and finds it damaged.
  experiment->train_data = bad_data(experiment->train_data, {8, 10}, [&](int batch) {
    if (batch == 10) fs::resize_file(checkpoints + "/step-000006/trainer.json", 1);
  });
  const LoopResult result = train_quietly(*experiment, *run);
  CHECK(result.ending == Ending::kLimit);
  const std::vector<core::Node> rollbacks = rollbacks_of(run->run_dir());
  REQUIRE(rollbacks.size() == 2);
  CHECK(name_in(rollbacks[0], "checkpoint") == "step-000006");
  CHECK(rollbacks[0].find("skipped") == nullptr);
  CHECK(name_in(rollbacks[1], "checkpoint") == "step-000003");
  REQUIRE(rollbacks[1].find("skipped")->items().size() == 1);
  CHECK(rollbacks[1].find("skipped")->items()[0].as_string().starts_with(
      checkpoints + "/step-000006/trainer.json holds 1 bytes, its manifest says "));
  CHECK(store::read_series(run->run_dir(), "loss").value().size() == 12);
  for (const auto& info : artifact::list_checkpoints(checkpoints)) CHECK(artifact::verify_checkpoint(info.path).ok());
}

TEST_CASE("a rollback that finds nothing whole fails the run and says what there was", "[train][faults]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto experiment = experiment_of_recipe({"checkpoint.save_total_limit=1"});
  const auto run = new_run("runs");
  const std::string damaged = run->run_dir() + "/checkpoints/step-000006/trainer.json";
  experiment->train_data = bad_data(experiment->train_data, {8, 10}, [&](int batch) {
    if (batch == 10) fs::remove(damaged);
  });
  CHECK_THROWS_WITH(train_quietly(*experiment, *run),
                    Catch::Contains("and there is nothing to roll back to: " + damaged + " is missing at step 8"));
}

TEST_CASE("a checkpoint that is damaged while it is loaded leaves the run resumable", "[train][resume]") {
  const tests::Folder folder;
  folder.write("recipe.yaml", kRecipe);
  const auto experiment = experiment_of_recipe();
  const auto run = new_run("runs");
  const std::string checkpoint = train_quietly(*experiment, *run).last_checkpoint;
  const auto refusal = [&](const std::vector<std::string>& sets) {
    const auto again = experiment_of_recipe(sets);
    const auto resumed = new_run("resumed");
    try {
      train_quietly(*again, *resumed, checkpoint);
    } catch (const core::RunError& error) {
      return error;
    }
    return core::RunError("it was loaded");
  };
  CHECK(refusal({"model.hidden=[9]"}).exit_code() == core::kExitUsage);
  fs::resize_file(checkpoint + "/trainer.json", 1);  // it was whole when it was chosen
  const core::RunError changed = refusal({});
  CHECK(changed.exit_code() == core::kExitResumable);
  CHECK(changed.hint() == "it changed while being loaded; the same command resumes from the newest intact one");
}

}  // namespace runner::train
