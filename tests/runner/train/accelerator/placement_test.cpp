// Models whose blocks are on two pretended accelerators, in the memory of the CPU and on the disk, beside the CPU. Part
// of the program `accelerator`.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/platform/files.h"
#include "runner/train/placement/block_places.h"
#include "runner/train/placement/travelling_weights.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

constexpr double kClose = 1e-5;
constexpr double kLow = 2e-2;  // of bfloat16

/// A recipe of a folder of tests/parity/models.
std::string recipe_of(const tests::TempDir& folder, const std::string& model, const std::string& more) {
  const std::string there = tests::source_dir() + "/tests/parity/models/" + model;
  const std::string path = folder / "recipe.yaml";
  core::write_file_atomic(path, "init_from: " + there + "\nloss: cross_entropy\ndata: {train: {type: ids, path: " +
                                    there + "/ids.jsonl}, val: {type: ids, path: " + there +
                                    "/ids.jsonl}}\noptimizer: {type: adamw, lr: 0.01}\n"
                                    "training: {max_steps: 3, micro_batch_size: 2, gradient_accumulation_steps: 2, "
                                    "clip_grad_norm: 0.5}\neval: {eval_steps: 1}\n" +
                                    more)
      .value();
  return path;
}

struct Case {
  std::string name, model, more, map;
  std::vector<std::string> sets = {};
  double tolerance = kClose;
};

constexpr const char* kLora = "adapters: [{type: lora, r: 4, target_modules: all-linear}]\n";

TEST_CASE("a model on several devices trains as on the CPU", "[.][accelerator]") {
  const std::vector<Case> cases = {
      {"all weights on two", "llama-grouped", "", "{embed: 0, h.0: 1, h.1: 0, head: 1}"},
      {"all weights, tied", "gpt2-default", "", "{embed: 0, h: 1, head: 0}"},
      {"scaled", "llama-grouped", "", "{embed: 0, h.0: 1, h.1: 0, head: 1}", {"precision=16-mixed"}, kLow},
      {"adapters, from the CPU and the disk", "llama-grouped", kLora, "{embed: 1, h.0: cpu, h.1: disk, head: 0}"},
      {"adapters, all from the disk", "llama-grouped", kLora, "{\"\": 0, h: disk, head: disk}"},
      {"adapters, computed twice", "llama-grouped", kLora, "{\"\": 0, h: cpu}", {"activation_checkpointing=full"}},
      {"adapters in bfloat16", "qwen3-default", kLora, "{\"\": 0, h: disk}", {"precision=bf16-mixed"}, kLow},
      {"beside 4 bits", "llama-grouped",
       std::string(kLora) + "quantization: {load_in_4bit: true, bnb_4bit_quant_type: nf4}\n", "{\"\": 0, h.1: 1}"},
      {"experts", "mixtral-balanced", "", "{\"\": 1, h.0: 0}", {"model.router_aux_loss_coef=0.1"}},
      {"T5", "t5-default", "", "{\"\": 0, encoder: 1}"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      accelerator::install();
      const tests::TempDir folder;
      const std::string path = recipe_of(folder, c.model, c.more);
      const Trained cpu = train_on(kCpu, path, c.sets, folder);
      const Trained placed = train_on(kFirst, path, with(c.sets, {"placement.device_map=" + c.map}), folder);
      check_close(cpu, placed, c.tolerance);
    }
  }
}

TEST_CASE("weights that are elsewhere take memory of a device for two blocks alone", "[.][accelerator]") {
  accelerator::install();
  const tests::TempDir folder;
  const std::string path = recipe_of(folder, "llama-grouped", kLora);
  const Trained built = build_on(kFirst, path, {"placement.device_map={\"\": 0, h.0: cpu, h.1: disk}"});
  const BlockPlaces& places = *built.experiment->places;
  CHECK(places.text().starts_with("0: embed; cpu: h.0; disk: h.1; 0: head; "));
  REQUIRE(!places.travelling.empty());
  std::int64_t bytes = 0;
  for (const components::NamedTensor& parameter : built.experiment->model->parameters()) {
    const bool travels = places.travelling.contains(parameter.name);
    CHECK(parameter.tensor.device() == c10::Device(kFirst));
    CHECK((parameter.tensor.storage().nbytes() == 0) == travels);
    if (travels) bytes += parameter.tensor.numel() * static_cast<std::int64_t>(parameter.tensor.element_size());
  }
  CHECK(bytes == places.travelling_bytes);
  CHECK(built.experiment->placement->unfilled().empty());
}

}  // namespace
}  // namespace runner::train
