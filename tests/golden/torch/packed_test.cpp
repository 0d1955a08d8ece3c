// Folders whose weights bitsandbytes packed, against what Transformers computes of them. tests/parity/cases/packed.py
// wrote tests/parity/packed.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/block/quantized.h"
#include "components/loss/loss.h"
#include "components/ops/kernel_policy.h"
#include "components/part/linear.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/train/experiment/experiment.h"
#include "tests/support/paths.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

namespace fs = std::filesystem;

using components::TensorMap;
using runner::checkpoint::TensorSource;
using runner::train::Experiment;

/// Shares of the largest logit; kRounded: where numbers are rounded to 8 bits.
constexpr double kBound = 1e-4, kRounded = 0.02;

struct Plain {
  explicit Plain(bool plain) { components::set_fused_kernels(!plain); }
  ~Plain() { components::set_fused_kernels(true); }
};

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(tests::source_dir() + "/tests/parity/packed")) {
    found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

struct Loaded {
  std::unique_ptr<Experiment> experiment;
  runner::checkpoint::InitWeights weights;
};

Loaded load(const std::string& folder) {
  auto experiment = tests::experiment_of("init_from: " + folder + "\ndata: {train: {type: ids, path: " + folder +
                                         "/ids.jsonl}}\nadapters: [{type: lora, r: 2, target_modules: all-linear}]\n"
                                         "optimizer: {type: adamw, lr: 0.001}\n"
                                         "training: {max_steps: 1, micro_batch_size: 2}\n");
  const runner::resolve::Recipe& recipe = experiment->recipe;
  runner::core::Diagnostics diagnostics;
  auto weights = runner::checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                                    *experiment->model, recipe.output_dir, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(weights);
  CHECK(weights->filled == weights->tensors);
  CHECK(weights->quantized > 0);
  runner::checkpoint::load_init_weights(*weights, *experiment->model);
  return {std::move(experiment), *std::move(weights)};
}

TensorMap batch_of(const Experiment& experiment, const TensorSource& expected) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < expected.tensor("logits").size(0); ++i) numbers.push_back(i);
  TensorMap batch;
  experiment.train_data->fetch(numbers, batch);
  return batch;
}

void check_logits(const Experiment& experiment, const TensorSource& expected, const char* name, double bound) {
  TensorMap tensors = batch_of(experiment, expected);
  const at::NoGradGuard no_grad;
  experiment.model->forward(tensors);
  const at::Tensor logits = expected.tensor(name);
  CHECK((tensors.at(components::kOutput) - logits).abs().max().item<double>() <=
        bound * logits.abs().max().item<double>());
}

}  // namespace

TEST_CASE("packed weights compute what Transformers and bitsandbytes compute", "[golden][quantization]") {
  CHECK(folders().size() == 5);
  for (const std::string& folder : folders()) {
    for (const bool plain : {false, true}) {
      DYNAMIC_SECTION(fs::path(folder).filename().string() << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const std::unique_ptr<Experiment> experiment = load(folder).experiment;
        const TensorSource expected(folder + "/expected.safetensors");
        check_logits(*experiment, expected, "logits", kBound);
        if (expected.find("in_use") == nullptr) continue;
        experiment->model->set_training(false);
        check_logits(*experiment, expected, "in_use", kRounded);
      }
    }
  }
}

TEST_CASE("packed weights are read bit for bit, joined and alone", "[golden][quantization]") {
  for (const std::string& folder : folders()) {
    INFO(folder);
    const Loaded loaded = load(folder);
    const TensorSource source(loaded.weights.source);
    std::map<std::string, const components::part::Product*> layers;
    for (const auto& named : components::block::quantized_linears(loaded.experiment->model->blocks())) {
      layers.emplace(named.name + ".weight", &named.linear->product());
    }
    std::size_t compared = 0;
    for (const auto& fill : loaded.weights.fills) {
      if (!layers.contains(fill.name)) continue;
      INFO(fill.name);
      std::vector<at::Tensor> parts;
      for (const std::string& name : fill.from) {
        const runner::artifact::TensorBytes& bytes = *source.find(name);
        parts.push_back(at::empty(bytes.shape, at::TensorOptions().dtype(at::kFloat)));
        source.copy_to(bytes, parts.back());
      }
      const components::part::Product& layer = *layers.at(fill.name);
      CHECK(layer.weight(0, layer.out(), false).equal(at::cat(parts, 0)));
      ++compared;
    }
    CHECK(compared == layers.size());
  }
}
