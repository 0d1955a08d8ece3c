// Attention on another device keeps no scores: rows of several documents, with padding, with a window. Part of the
// program `accelerator`.

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

constexpr std::int64_t kLength = 2048;

/// Rows of 2,048 ids: packed of lines of some hundred, or of 2,040 with padding before them.
std::string recipe(const tests::TempDir& folder, bool packed, bool padded, const std::string& model) {
  std::string lines;
  for (int i = 0; i < (packed ? 96 : 8); ++i) {
    const std::int64_t length = packed ? 90 + i * 17 % 160 : kLength - 8 + i % 3;
    std::string ids, mask;
    for (std::int64_t j = 0; j < length; ++j) {
      ids += (j > 0 ? "," : "") + std::to_string((i * 7 + j * 3) % 40);
      mask += std::string(j > 0 ? "," : "") + (padded && j < 4 ? "0" : "1");
    }
    lines += "{\"input_ids\": [" + ids + "], \"attention_mask\": [" + mask + "]}\n";
  }
  core::write_file_atomic(folder / "ids.jsonl", lines).value();
  const std::string path = folder / "recipe.yaml";
  core::write_file_atomic(path, "model: " + model +
                                    "\nloss: cross_entropy\ndata: {train: {type: ids, path: " + (folder / "ids.jsonl") +
                                    ", vocab_size: 40, max_seq_len: 2048, packing: " + (packed ? "true" : "false") +
                                    "}}\noptimizer: {type: adamw, lr: 5.0e-3}\n"
                                    "training: {max_steps: 3, micro_batch_size: 1}\ncheckpoint: {save_at_end: false}\n")
      .value();
  return path;
}

struct Case {
  const char* name;
  bool packed, padded;
  std::string model;
};

const std::string kLlama = "{type: llama, n_layer: 2, n_head: 2, n_kv_head: 1, n_embd: 64, mlp_width: 96";

const std::vector<Case> kCases = {
    {"packed", true, false, kLlama + "}"},
    {"packed, learned positions", true, false, "{type: gpt, n_layer: 2, n_head: 2, n_embd: 64, n_positions: 2048}"},
    {"packed, in a window", true, false, kLlama + ", sliding_window: 64}"},
    {"packed and padded", true, true, kLlama + "}"},
    {"padded", false, true, kLlama + ", sliding_window: 64}"},
    {"in a window", false, false, kLlama + ", sliding_window: 64}"},
};

TEST_CASE("attention of another device keeps no scores and reads no value", "[.][accelerator]") {
  for (const Case& c : kCases) {
    for (const std::string precision : {"32-true", "bf16-mixed"}) {
      DYNAMIC_SECTION(c.name << " in " << precision) {
        const tests::TempDir folder;
        const std::string path = recipe(folder, c.packed, c.padded, c.model);
        const std::vector<std::string> sets = {"precision=" + precision};
        accelerator::install();
        accelerator::set_memory_limit(0);
        const std::int64_t held = accelerator::memory_peak();
        const Trained device = train_on(kFirst, path, sets, folder);
        const auto taken = static_cast<double>(accelerator::memory_peak() - held);
        const double planned = planned_bytes(path, with(sets, {"device=cuda"}));
        INFO(planned << " planned, " << taken << " taken");
        CHECK(std::fabs(planned - taken) <= 0.1 * taken);
        CHECK(accelerator::largest_block() < kLength * kLength);  // not even of one byte each
        if (precision == "32-true") check_close(train_on(kCpu, path, sets, folder), device, 1e-5);
        const auto reads = [&](int steps) {
          const std::int64_t before = accelerator::values_read();
          train_unwatched(kFirst, path,
                          with(sets, {"logging_steps=1000", "training.max_steps=" + std::to_string(steps)}), folder);
          return accelerator::values_read() - before;
        };
        CHECK(reads(6) == reads(3));
      }
    }
  }
}

TEST_CASE("a captured step takes rows of any number of documents", "[.][accelerator]") {
  const tests::TempDir folder;
  std::string lines;
  for (int i = 0; i < 24; ++i) {
    std::string ids = std::to_string(i);
    for (int j = 1; j < (i % 3 == 0 ? 16 : 8); ++j) ids += "," + std::to_string((i * 7 + j * 3) % 40);
    lines += "{\"input_ids\": [" + ids + "]}\n";
  }
  core::write_file_atomic(folder / "ids.jsonl", lines).value();
  const std::string path = folder / "recipe.yaml";
  core::write_file_atomic(
      path, "model: " + kLlama + "}\nloss: cross_entropy\ndata: {train: {type: ids, path: " + (folder / "ids.jsonl") +
                ", vocab_size: 40, max_seq_len: 16, packing: true}}\noptimizer: {type: adamw, lr: "
                "5.0e-3}\ntraining: {max_steps: 8, micro_batch_size: 2}\ncheckpoint: "
                "{save_at_end: false}\n")
      .value();
  const Trained plain = train_on(kFirst, path, {}, folder);
  const std::int64_t before = accelerator::graph_replays();
  const Trained graph = train_on(kFirst, path, {"compile.cuda_graphs=true"}, folder);
  CHECK(accelerator::graph_replays() > before);
  check_close(plain, graph, 1e-5);
}

}  // namespace
}  // namespace runner::train
