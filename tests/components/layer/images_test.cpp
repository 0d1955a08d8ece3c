// Layers of images against torch.nn 2.11, and what is said where they do not fit.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/tensors_torch.h"

using components::BatchSpec;
using components::NamedTensor;
using components::model::Model;
using tests::make_model;
using Values = std::vector<double>;

namespace {

std::string sequential(const std::string& layers, const std::string& format = "contiguous") {
  return "{type: sequential, memory_format: " + format + ", layers: [" + layers + "]}";
}

// Every layer of images once; in Python:
//   conv = nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 0), groups=2); bn = nn.BatchNorm2d(4, momentum=0.2,
//   eps=1e-3); c2 = nn.Conv2d(4, 4, 3, padding=2, dilation=2, bias=False); gn = nn.GroupNorm(2, 4)
//   sc = nn.Conv2d(4, 4, 1); lin = nn.Linear(8, 3), after torch.manual_seed(7)
constexpr const char* kLayers =
    "{type: sequential, layers: [{type: conv2d, out_channels: 4, kernel_size: [3, 2], stride: [2, 1], padding: [1, 0], "
    "groups: 2}, {type: batch_norm, momentum: 0.2, eps: 1e-3}, relu]}, "
    "{type: max_pool2d, kernel_size: 2, stride: 1, padding: 1}, "
    "{type: residual, body: [{type: conv2d, out_channels: 4, kernel_size: 3, padding: 2, dilation: 2, bias: false}, "
    "{type: group_norm, num_groups: 2}], shortcut: {type: conv2d, out_channels: 4, kernel_size: 1}, activation: relu}, "
    "{type: avg_pool2d, kernel_size: 3, stride: 2, padding: 1, count_include_pad: false}, "
    "{type: adaptive_avg_pool2d, output_size: [2, 1]}, flatten, {type: linear, out_features: 3}";

at::Tensor made_up_images() {
  constexpr std::int64_t kSize = 3 * 2 * 6 * 7;
  return (at::arange(kSize, at::kLong).mul(7919).remainder(101).to(at::kFloat) / 50.0 - 1.0).reshape({3, 2, 6, 7});
}

std::map<std::string, at::Tensor> by_name(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, at::Tensor> map;
  for (const NamedTensor& named : tensors) map.emplace(named.name, named.tensor);
  return map;
}

void check_near(const at::Tensor& found, const Values& expected, double margin = 2e-6) {
  const Values values = tests::to_numbers(found);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(margin));
}

}  // namespace

TEST_CASE("layers of images give torch.nn's numbers, whatever their order in memory", "[layer][images]") {
  for (const char* format : {"contiguous", "channels_last"}) {
    DYNAMIC_SECTION(format) {
      at::manual_seed(7);
      const auto model = make_model(sequential(kLayers, format), tests::image_data(2, 6, 7, 3));
      const at::Tensor y = tests::forward(*model, made_up_images());
      check_near(
          y, {0.24880020320415497, -0.034647196531295776, 0.1393919289112091, 0.23873741924762726, 0.06218360364437103,
              0.29838255047798157, 0.30864566564559937, 0.009365558624267578, 0.26793918013572693});
      const auto buffers = by_name(model->buffers());
      check_near(buffers.at("layers.0.layers.1.running_mean"),
                 {0.003690457670018077, 0.011532321572303772, 0.062274158000946045, 0.030158912762999535});
      check_near(buffers.at("layers.0.layers.1.running_var"),
                 {0.807433009147644, 0.8149616718292236, 0.8209426403045654, 0.8404450416564941});

      y.square().sum().backward();
      const auto parameters = by_name(model->parameters());
      const std::map<std::string, double> norms = {
          {"layers.0.layers.0.weight", 0.9353947639465332},   {"layers.0.layers.1.weight", 0.4383854568004608},
          {"layers.2.body.0.weight", 4.598258972167969},      {"layers.2.body.1.bias", 0.5715259313583374},
          {"layers.2.shortcut.0.weight", 1.0604554414749146}, {"layers.6.weight", 4.489726543426514}};
      for (const auto& [name, norm] : norms) {
        INFO(name);
        CHECK(parameters.at(name).grad().norm().item<double>() == Approx(norm).epsilon(1e-5));
      }

      model->set_training(false);
      check_near(
          tests::forward(*model, made_up_images()),
          {0.22185517847537994, -0.08543522655963898, 0.10252519696950912, 0.2257310301065445, -0.06308577954769135,
           0.1660882830619812, 0.26103532314300537, -0.08634036779403687, 0.16144664585590363});
    }
  }
}

TEST_CASE("layers of images infer their sizes", "[layer][images]") {
  struct Case {
    const char* layers;
    const char* output;
  };
  static constexpr Case cases[] = {
      {"{type: conv2d, out_channels: 5, kernel_size: 3, padding: 1}", "float32 [batch, 5, 9, 12]"},
      {"{type: conv2d, out_channels: 5, kernel_size: [9, 4], stride: 3}", "float32 [batch, 5, 1, 3]"},
      {"{type: conv2d, out_channels: 6, kernel_size: 3, dilation: [4, 1], groups: 3, in_channels: 3}",
       "float32 [batch, 6, 1, 10]"},
      {"{type: max_pool2d, kernel_size: 2}", "float32 [batch, 3, 4, 6]"},
      {"{type: avg_pool2d, kernel_size: 3, stride: 2, padding: 1}", "float32 [batch, 3, 5, 6]"},
      {"{type: adaptive_avg_pool2d, output_size: [2, 3]}", "float32 [batch, 3, 2, 3]"},
      {"{type: batch_norm, num_features: 3}, {type: group_norm, num_groups: 3}, relu", "float32 [batch, 3, 9, 12]"},
      {"{type: residual, body: {type: max_pool2d, kernel_size: 2}, shortcut: {type: max_pool2d, kernel_size: 2}}, "
       "flatten",
       "float32 [batch, 72]"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.layers) {
      const auto model = make_model(sequential(c.layers), tests::image_data(3, 9, 12, 2));
      const components::TensorSpec& port = model->blocks().back()->outputs().front();
      CHECK(components::to_text(port) == c.output);
      const at::Tensor y = tests::forward(*model, at::randn({2, 3, 9, 12}));
      REQUIRE(y.dim() == static_cast<std::int64_t>(port.shape.size()));
      for (std::size_t i = 1; i < port.shape.size(); ++i) CHECK(y.size(static_cast<std::int64_t>(i)) == port.shape[i]);
    }
  }
}

TEST_CASE("a residual block without shortcut and activation adds its input", "[layer][residual]") {
  const auto model = make_model(sequential("{type: residual, body: relu}"), tests::image_data(1, 1, 2, 2));
  const at::Tensor x = at::ones({1, 1, 1, 2});
  x.select(3, 1).fill_(-2);
  check_near(tests::forward(*model, x), {2, -2});
}

TEST_CASE("batch norm keeps no averages if configured not to", "[layer][batch_norm]") {
  const auto model =
      make_model(sequential("{type: batch_norm, affine: false, track_running_stats: false}"), tests::class_data(1, 2));
  CHECK(model->parameters().empty());
  CHECK(model->buffers().empty());
  model->set_training(false);
  // Mean 2 and biased variance 1 of {1, 3}.
  const double one = 1 / std::sqrt(1 + 1e-5);
  check_near(tests::forward(*model, tests::floats({{1}, {3}})), {-one, one});
}

TEST_CASE("batch norm says when a batch has no variance", "[layer][batch_norm]") {
  const auto model = make_model(sequential("batch_norm"), tests::class_data(2, 2));
  CHECK_THROWS_WITH(tests::forward(*model, at::ones({1, 2})),
                    "layers[0]: batch_norm got a batch of one sample with one value per channel, which has no "
                    "variance");
  model->set_training(false);
  CHECK_NOTHROW(tests::forward(*model, at::ones({1, 2})));
}

TEST_CASE("a layer of images that does not fit is reported at its location", "[layer][images]") {
  struct Case {
    const char* layers;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"{type: conv2d, out_channels: 4, kernel_size: 3, in_channels: 4}",
       "model.yaml:1:117: error: layers[0]: conv2d expects 4 channels, but the data is float32 [batch, 3, 8, 8]\n"
       "  hint: set in_channels to 3 or leave it out\n"},
      {"relu, {type: batch_norm, num_features: 64}",
       "model.yaml:1:95: error: layers[1]: batch_norm expects 64 channels, but layers[0] returns float32 [batch, 3, 8, "
       "8]\n"
       "  hint: set num_features to 3 or leave it out\n"},
      {"{type: conv2d, out_channels: 4, kernel_size: [2, 11], padding: [0, 1]}",
       "model.yaml:1:101: error: layers[0]: conv2d slides a window of 2 x 11 pixels, but the data is float32 "
       "[batch, "
       "3, 8, 8]\n"
       "  hint: a padded image has 8 x 10: use a smaller kernel_size, or more padding\n"},
      {"{type: conv2d, out_channels: 4, kernel_size: 3, groups: 2}",
       "model.yaml:1:112: error: layers[0]: conv2d splits the channels into 2 groups, but the data is float32 "
       "[batch, "
       "3, 8, 8]\n"
       "  hint: groups must divide the number of input channels\n"},
      {"{type: group_norm, num_groups: 2}",
       "model.yaml:1:87: error: layers[0]: group_norm splits the channels into 2 groups, but the data is float32 "
       "[batch, "
       "3, 8, 8]\n"
       "  hint: num_groups must divide the number of input channels\n"},
      {"flatten, {type: max_pool2d, kernel_size: 2}",
       "model.yaml:1:65: error: layers[1]: max_pool2d needs images, float32 [batch, channels, height, width], but "
       "layers[0] returns float32 [batch, 192]\n"
       "  hint: put image layers before flatten, and only for data of images\n"},
      {"{type: max_pool2d, kernel_size: 2, padding: 2}",
       "model.yaml:1:100: error: layers[0]: max_pool2d has a padding of 2 x 2 for a window of 2 x 2, but the data "
       "is "
       "float32 [batch, 3, 8, 8]\n"
       "  hint: padding is at most half of kernel_size\n"},
      {"{type: residual, body: {type: conv2d, out_channels: 6, kernel_size: 3, padding: 1}}",
       "model.yaml:1:56: error: layers[0]: residual adds its body's output, float32 [batch, 6, 8, 8], to its input, "
       "float32 [batch, 3, 8, 8]\n"
       "  hint: give it a shortcut with the same output shape, such as a conv2d with kernel_size 1 and the body's "
       "channels and stride\n"},
      {"{type: residual, body: [relu, {type: batch_norm, num_features: 2}]}",
       "model.yaml:1:119: error: layers[0].body[1]: batch_norm expects 2 channels, but layers[0].body[0] returns "
       "float32 [batch, 3, 8, 8]\n"
       "  hint: set num_features to 3 or leave it out\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.layers) {
      const auto node = tests::block("model", sequential(c.layers));
      const auto data = tests::image_data(3, 8, 8, 2);
      runner::core::Diagnostics diagnostics;
      components::part::MetaWeights weights;
      CHECK(components::model::build(node, {data, weights, node, diagnostics}) == nullptr);
      CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) == c.message);
    }
  }
}

TEST_CASE("the recipe of ResNet-18 has as many parameters as its model in PyTorch", "[layer][images]") {
  runner::core::Diagnostics diagnostics;
  const auto recipe = runner::resolve::load_recipe(tests::source_dir() + "/recipes/lib/resnet18.yaml", {},
                                                   runner::registry::Registry::builtin(), diagnostics);
  REQUIRE(recipe);
  const auto data = tests::image_data(3, 32, 32, 10);
  components::part::MetaWeights weights;
  const auto model = components::model::build(recipe->at("model"), {data, weights, recipe->at("model"), diagnostics});
  REQUIRE(model != nullptr);
  CHECK(model->parameter_count() == 11'173'962);  // tests/bench/peers/common.py: make_resnet18
  // Of the 20 norms, mean and variance each.
  CHECK(model->buffers().size() == 40);
  CHECK(model->forward_flops(0) == Approx(2 * 555.4e6).epsilon(1e-3));
}
