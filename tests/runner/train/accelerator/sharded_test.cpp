// What two ranks with a pretended device each shard, beside ranks on the CPU; and their checkpoints, there and back.
// Part of the program `accelerator`.

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/platform/files.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"

namespace runner::train {
namespace {

using namespace tests::device_training;

constexpr const char* kDevices = "pretend";

std::string recipe(const tests::TempDir& folder, const std::string& model) {
  const std::string from = tests::source_dir() + "/tests/parity/models/" + model;
  const std::string data = "{type: ids, path: " + from + "/ids.jsonl, packing: true, max_seq_len: 20}";
  const std::string path = folder / "recipe.yaml";
  core::write_file_atomic(
      path, "init_from: " + from + "\nloss: cross_entropy\ndata: {train: " + data + ", val: " + data +
                "}\noptimizer: {type: adamw, lr: 5.0e-3}\n"
                "training: {max_steps: 6, global_batch_size: 2, micro_batch_size: 1, clip_grad_norm: 1.0}\n"
                "eval: {eval_steps: 3}\ncheckpoint: {save_steps: 3}\n")
      .value();
  return path;
}

TEST_CASE("what ranks with a device each shard trains as on the CPU", "[.][accelerator]") {
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    for (const std::string model : {"gpt2-default", "llama-grouped", "qwen3_moe-sparse"}) {
      for (const std::string precision : {"32-true", "bf16-mixed"}) {
        DYNAMIC_SECTION(shard << " of " << model << " in " << precision) {
          const tests::TempDir folder;
          const std::string path = recipe(folder, model);
          const std::vector<std::string> sets = {"parallelism.shard=" + shard, "precision=" + precision};
          const Trained cpu = train_two_on(kCpu, path, sets, folder);
          check_close(cpu, train_two_on(kDevices, path, sets, folder), precision == "32-true" ? 1e-5 : 2e-2);
        }
      }
    }
  }
}

TEST_CASE("what is sharded on devices resumes on the CPU, and back", "[.][accelerator]") {
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    for (const auto& [first, then] : {std::pair(kCpu, kDevices), std::pair(kDevices, kCpu)}) {
      DYNAMIC_SECTION(shard << " from " << first << " to " << then) {
        const tests::TempDir folder, other;
        const std::string path = recipe(folder, "llama-grouped");
        const std::vector<std::string> sets = {"parallelism.shard=" + shard,
                                               "weight_averaging={type: ema, decay: 0.8}"};
        const Trained whole = train_two_on(kCpu, path, sets, folder);
        const Trained begun = train_two_on(first, path, with(sets, {"training.max_steps=3"}), other);
        REQUIRE(begun.checkpoint.ends_with("step-000003"));
        Trained resumed = train_two_on(then, path, sets, other, begun.checkpoint);
        resumed.metrics.insert(resumed.metrics.begin(), begun.metrics.begin(), begun.metrics.end());
        check_close(whole, resumed, 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace runner::train
