#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <string>

#include "components/model/model.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using tests::make_model;

TEST_CASE("layers infer their sizes from what arrives", "[layer][sequential]") {
  struct Case {
    const char* name;
    const char* layers;
    BatchSpec data;
    at::Tensor input;
    const char* output;
  };
  BatchSpec images = tests::class_data(4, 3);
  images.find(components::kInput)->shape = {components::kBatch, 5, 6};
  const Case cases[] = {
      {"features",
       "[{type: linear, out_features: 8}, relu, {type: layer_norm}, {type: linear, in_features: 8, out_features: 3}]",
       tests::class_data(4, 3), at::randn({2, 4}), "float32 [batch, 3]"},
      {"every activation",
       "[relu, gelu, {type: gelu, approximate: tanh}, silu, tanh, sigmoid, {type: dropout, p: 0.2}]",
       tests::class_data(4, 4), at::randn({2, 4}), "float32 [batch, 4]"},
      {"a bag of ids", "[{type: embedding, embedding_dim: 6}, mean_pool, {type: linear, out_features: 3, bias: false}]",
       tests::text_data(11, 7), at::randint(11, {2, 7}, at::kLong), "float32 [batch, 3]"},
      {"each position", "[{type: embedding, embedding_dim: 6}, {type: linear, out_features: 11}]",
       tests::text_data(11, 7), at::randint(11, {2, 7}, at::kLong), "float32 [batch, time, 11]"},
      {"images", "[flatten, {type: linear, in_features: 30, out_features: 3}]", images, at::randn({2, 5, 6}),
       "float32 [batch, 3]"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto model = make_model(std::string("{type: sequential, layers: ") + c.layers + "}", c.data);
      const components::TensorSpec& port = model->blocks().back()->outputs().front();
      CHECK(components::to_text(port) == c.output);
      CHECK(port.name == components::kOutput);
      const at::Tensor output = tests::forward(*model, c.input);
      REQUIRE(output.dim() == static_cast<std::int64_t>(port.shape.size()));
      for (std::size_t i = 0; i < port.shape.size(); ++i) {
        if (port.shape[i] > 0) CHECK(output.size(static_cast<std::int64_t>(i)) == port.shape[i]);
      }
    }
  }
}

TEST_CASE("a layer that does not fit is reported at its location", "[layer][sequential]") {
  struct Case {
    const char* name;
    const char* recipe;
    BatchSpec data;
    const char* message;
  };
  const Case cases[] = {
      {"a wrong width",
       "{type: sequential, layers: [{type: linear, out_features: 32}, relu, {type: linear, in_features: 64, "
       "out_features: 3}]}",
       tests::class_data(4, 3),
       "model.yaml:1:97: error: layers[2]: linear expects 64 features, but layers[1] returns float32 [batch, 32]\n"
       "  hint: set in_features to 32 or leave it out\n"},
      {"a wrong width of the data", "{type: sequential, layers: [{type: linear, in_features: 5, out_features: 3}]}",
       tests::class_data(4, 3),
       "model.yaml:1:57: error: layers[0]: linear expects 5 features, but the data is float32 [batch, 4]\n"
       "  hint: set in_features to 4 or leave it out\n"},
      {"an activation on ids", "{type: sequential, layers: [relu]}", tests::text_data(11, 8),
       "model.yaml:1:29: error: layers[0]: relu needs float32, but the data is int64 [batch, time]\n"
       "  hint: put an embedding before it\n"},
      {"a norm on ids", "{type: sequential, layers: [{type: layer_norm}]}", tests::text_data(11, 8),
       "model.yaml:1:29: error: layers[0]: layer_norm needs float32, but the data is int64 [batch, time]\n"
       "  hint: put an embedding before it\n"},
      {"an embedding of floats", "{type: sequential, layers: [relu, {type: embedding, embedding_dim: 3}]}",
       tests::class_data(4, 3),
       "model.yaml:1:35: error: layers[1]: embedding needs ids, int64, but layers[0] returns float32 [batch, 4]\n"
       "  hint: put an embedding first, and only for data of ids\n"},
      {"a small embedding", "{type: sequential, layers: [{type: embedding, embedding_dim: 3, num_embeddings: 10}]}",
       tests::text_data(11, 8),
       "model.yaml:1:81: error: layers[0]: num_embeddings is 10, but the data has 11 distinct ids\n"
       "  hint: set num_embeddings to 11 or leave it out\n"},
      {"positions flattened", "{type: sequential, layers: [{type: embedding, embedding_dim: 3}, flatten]}",
       tests::text_data(11, 8),
       "model.yaml:1:66: error: layers[1]: flatten needs sizes known before the run, but layers[0] returns "
       "float32 "
       "[batch, time, 3]\n  hint: reduce the positions with mean_pool instead\n"},
      {"nothing to pool", "{type: sequential, layers: [mean_pool]}", tests::class_data(4, 3),
       "model.yaml:1:29: error: layers[0]: mean_pool needs float32 [batch, time, n], but the data is float32 "
       "[batch, 4]\n"
       "  hint: remove it if there are no positions\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto node = tests::block("model", c.recipe);
      runner::core::Diagnostics diagnostics;
      components::part::MetaWeights weights;
      CHECK(components::model::build(node, {c.data, weights, node, diagnostics}) == nullptr);
      CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) == c.message);
    }
  }
}
