// Every example of a fragment builds, for some data that it is made for.

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "components/adapter/adapter.h"
#include "components/layer/layer.h"
#include "components/loss/loss.h"
#include "components/lr_scheduler/lr_scheduler.h"
#include "components/metric/metric.h"
#include "components/model/model.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tokenizer/tokenizer.h"
#include "components/transform/transform.h"
#include "components/weight_averaging/weight_averaging.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorSpec;
using runner::core::Diagnostics;
using runner::core::Node;

namespace {

/// The situations a component may be made for: data, and what the model returns.
struct Situation {
  BatchSpec data;
  TensorSpec output;
};

std::vector<Situation> situations() {
  BatchSpec pairs = tests::text_data(16, 8);
  pairs.tensors.push_back({components::kRejectedAt, Dtype::kInt64, {kBatch}, false});
  BatchSpec masked = tests::text_data(700, 8);
  masked.find(components::kTarget)->in_place = true;
  BatchSpec texts = tests::text_data(16, 8), spans = texts;
  texts.tensors.push_back({components::kTextsAt, Dtype::kInt64, {kBatch, 2}, false});
  *texts.find(components::kTarget) = {components::kTarget, Dtype::kFloat32, {kBatch, 1}, false};
  *spans.find(components::kTarget) = {components::kTarget, Dtype::kInt64, {kBatch, 2}, false};
  return {{texts, {"output", Dtype::kFloat32, {kBatch, 2, 8}}},
          {spans, {"output", Dtype::kFloat32, {kBatch, kTime, 2}}},
          {masked, {"output", Dtype::kFloat32, {kBatch, kTime, 700}}},
          {tests::class_data(8, 3), {"output", Dtype::kFloat32, {kBatch, 3}}},
          {tests::value_data(8, 1), {"output", Dtype::kFloat32, {kBatch, 1}}},
          {tests::value_data(8, 2), {"output", Dtype::kFloat32, {kBatch, 2}}},
          {tests::text_data(16, 8), {"output", Dtype::kFloat32, {kBatch, kTime, 16}}},
          {pairs, {"output", Dtype::kFloat32, {kBatch, kTime, 16}}},
          {pairs, {"output", Dtype::kFloat32, {kBatch, 2}}}};
}

bool build_one(const std::string& kind, const Node& block, const Situation& s, Diagnostics& diagnostics) {
  using namespace components;
  part::DrawnWeights weights;
  if (kind == "model") return model::build(block, {s.data, weights, block, diagnostics}) != nullptr;
  if (kind == "loss") return loss::build(block, {{s.output}, s.data, block, diagnostics}) != nullptr;
  if (kind == "metric") {
    const std::vector<std::string> tags = {"B-PER", "I-PER", "O"};
    const metric::BytesOf bytes_of = [](std::span<const std::int64_t> ids) { return std::ssize(ids); };
    return metric::build(block, {{{s.output}, s.data, block, diagnostics}, {}, false, tags, bytes_of}) != nullptr;
  }
  if (kind == "adapter") {
    const Node of_model = tests::block("model", "{type: llama, n_layer: 1, n_head: 2, n_embd: 32}");
    const auto model = model::build(of_model, {s.data, weights, of_model, diagnostics});
    return model != nullptr && adapter::build(block, {*model, of_model, weights, block, diagnostics}) != nullptr;
  }
  if (kind == "transform") {
    for (const char* file : {"/tests/components/tokenizer/files/bert.txt", "/recipes/examples/data/numbers"}) {
      const auto tokenizer = tokenizer::read_tokenizer(tests::source_dir() + file).value();
      if (transform::build(block, {s.data, tokenizer, "data.train", block, diagnostics}) != nullptr) return true;
    }
    return false;
  }
  if (kind == "weight_averaging") return weight_averaging::build(block, {}) != nullptr;
  if (kind == "lr_scheduler") return lr_scheduler::build(block, {}) != nullptr;
  if (kind == "optimizer")
    return optimizer::build(block, {optimizer::make_param_groups(block, {}, diagnostics)}) != nullptr;
  for (const TensorSpec& port : {s.data.at(components::kInput), TensorSpec{"x", Dtype::kFloat32, {kBatch, kTime, 8}},
                                 TensorSpec{"x", Dtype::kFloat32, {kBatch, 6, 8, 8}}}) {
    const layer::Inputs inputs{"layers.0", "layers[0]", "the data", port, "x", 16, weights, block, diagnostics};
    if (layer::build(block, inputs) != nullptr) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every example of these kinds builds", "[examples]") {
  const auto& registry = runner::registry::Registry::builtin();
  for (const std::string kind :
       {"model", "adapter", "layer", "loss", "optimizer", "lr_scheduler", "weight_averaging", "metric", "transform"}) {
    for (const std::string& name : registry.names(kind)) {
      const auto* fragment = registry.find(kind, name);
      INFO(kind << "/" << name);
      REQUIRE(fragment != nullptr);
      CHECK_FALSE(fragment->examples.empty());
      for (const Node& example : fragment->examples) {
        Diagnostics problems;
        const Node block = runner::registry::validate_component(example, kind, kind, registry, problems);
        bool built = false;
        for (const Situation& situation : situations()) {
          Diagnostics of_this_one;
          built = built || build_one(kind, block, situation, of_this_one);
          problems.add_all(of_this_one);
        }
        INFO(runner::core::render(problems));
        CHECK(built);
      }
    }
  }
}
