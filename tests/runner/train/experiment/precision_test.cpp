// The number formats of a model's blocks, the scaled loss of float16, and weights that are kept in bfloat16.

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "generated/section/precision.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/loop.h"
#include "tests/support/folder.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace runner::train {
namespace {

using core::Node;
using tests::new_run;
using tests::train_quietly;

constexpr const char* kRecipe = R"(
recipe_version: 1
run_name: formats
model: {type: mlp, hidden: [16, 16]}
data:
  train: {type: synthetic, task: spirals, num_samples: 60, num_classes: 2}
  val: {type: synthetic, task: spirals, num_samples: 20, num_classes: 2}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-2}
training: {max_steps: 20, micro_batch_size: 8, clip_grad_norm: 1.0}
logging_steps: 1
eval: {eval_steps: 5}
checkpoint: {save_steps: 5}
)";

constexpr const char* kGpt = R"(
recipe_version: 1
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 16}
data: {train: {type: text, path: corpus.txt, max_seq_len: 16}}
loss: cross_entropy
optimizer: adamw
training: {max_steps: 2, micro_batch_size: 4}
)";

std::unique_ptr<Experiment> experiment_of(const std::vector<std::string>& sets) {
  return tests::experiment_of(kRecipe, sets);
}

double summary_figure(const LoopResult& result, const char* name) {
  const Node* value = result.summary.find(name);
  return value != nullptr ? value->as_double() : 0.0;
}

/// A finite loss whose gradient is not a number, as the square root of zero has.
class Rootless final : public components::loss::Loss {
 public:
  explicit Rootless(std::shared_ptr<Loss> inner) : inner_(std::move(inner)) {}
  at::Tensor sum_of(const components::TensorMap& tensors) const override {
    return inner_->sum(tensors) + (tensors.at(components::kOutput).sum() * 0.0).sqrt();
  }
  std::int64_t count(const components::TensorMap& batch) const override { return inner_->count(batch); }
  bool count_is_static() const override { return inner_->count_is_static(); }

 private:
  std::shared_ptr<Loss> inner_;
};

/// What each block of the experiment's model got and gave in one forward pass.
std::map<std::string, std::string> formats_seen(Experiment& experiment) {
  std::map<std::string, std::string> seen;
  components::model::BlockHooks hooks;
  hooks.before_forward = [&](const components::block::Block& block, components::TensorMap& activations) {
    seen[block.name()] = c10::toString(activations.at(block.inputs().front().name).scalar_type());
  };
  hooks.after_forward = [&](const components::block::Block& block, components::TensorMap& activations) {
    seen[block.name()] +=
        std::string(" to ") + c10::toString(activations.at(block.outputs().front().name).scalar_type());
  };
  experiment.model->add_hooks(hooks);
  components::TensorMap batch;
  const std::int64_t indices[] = {0, 1, 2};
  experiment.train_data->fetch(indices, batch);
  {
    const components::Autocast autocast(read_precision(*experiment.recipe.precision).autocast);
    experiment.model->forward(batch);
  }
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  return seen;
}

}  // namespace

TEST_CASE("each block computes in the format of its mode", "[train][precision]") {
  using Seen = std::map<std::string, std::string>;
  struct Case {
    std::vector<std::string> sets;
    Seen seen;
  };
  const Case cases[] = {
      {{"precision.mode=32-true"},
       {{"layers.0", "Float to Float"}, {"layers.1", "Float to Float"}, {"layers.2", "Float to Float"}}},
      {{"precision.mode=bf16-mixed"},
       {{"layers.0", "Float to BFloat16"}, {"layers.1", "BFloat16 to BFloat16"}, {"layers.2", "BFloat16 to BFloat16"}}},
      {{"precision.mode=16-mixed"},
       {{"layers.0", "Float to Half"}, {"layers.1", "Half to Half"}, {"layers.2", "Half to Half"}}},
      {{"precision.mode=16-mixed", "precision.autocast.enabled=false"},
       {{"layers.0", "Float to Float"}, {"layers.1", "Float to Float"}, {"layers.2", "Float to Float"}}},
      {{"precision.mode=bf16-true"},
       {{"layers.0", "BFloat16 to BFloat16"},
        {"layers.1", "BFloat16 to BFloat16"},
        {"layers.2", "BFloat16 to BFloat16"}}},
      {{"precision.mode=bf16-mixed", "precision.overrides={layers.1: 32-true}"},
       {{"layers.0", "Float to BFloat16"}, {"layers.1", "Float to Float"}, {"layers.2", "Float to BFloat16"}}},
      {{"precision.mode=16-mixed", "precision.overrides={layers.0: bf16-mixed, '*.2': 32-true}"},
       {{"layers.0", "Float to BFloat16"}, {"layers.1", "BFloat16 to Half"}, {"layers.2", "Float to Float"}}},
      {{"precision.mode=bf16-true", "precision.overrides={layers.2: 32-true, '*': bf16-true}"},
       {{"layers.0", "BFloat16 to BFloat16"}, {"layers.1", "BFloat16 to BFloat16"}, {"layers.2", "Float to Float"}}},
      {{"precision.mode=32-true", "precision.overrides={layers.1: bf16-mixed}"},
       {{"layers.0", "Float to Float"}, {"layers.1", "Float to BFloat16"}, {"layers.2", "Float to Float"}}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.sets.back()) {
      const auto experiment = experiment_of(c.sets);
      CHECK(formats_seen(*experiment) == c.seen);
    }
  }
}

TEST_CASE("a pattern that matches no block, and a tied weight in two formats, are refused", "[train][precision]") {
  CHECK(tests::build_recipe(kRecipe, {"precision.overrides={layer.1: 32-true}"}).messages ==
        "--set precision.overrides={layer.1: 32-true}: error: the model has no block called \"layer.1\"\n"
        "  hint: did you mean \"layers.1\"? `*` matches any text\n");
  CHECK(tests::build_recipe(kRecipe, {"precision.overrides={encoder: 32-true}"}).messages ==
        "--set precision.overrides={encoder: 32-true}: error: the model has no block called \"encoder\"\n"
        "  hint: its blocks are called layers.0, layers.1, layers.2; `*` matches any text\n");
  CHECK(tests::build_recipe(kGpt, {"precision.mode=bf16-true", "precision.overrides={head: 32-true}"}).messages ==
        "--set precision.overrides={head: 32-true}: error: blocks embed and head share wte.weight, but embed keeps its "
        "weights in bfloat16 and head in float32\n"
        "  hint: give both the same kind of mode, or untie them\n");
  CHECK(tests::build_recipe(kGpt, {"precision.mode=bf16-mixed", "precision.overrides={head: 32-true}"}).messages == "");
}

TEST_CASE("every mode learns, and ends near float32", "[train][precision]") {
  const tests::Folder folder;
  std::map<std::string, double> losses;
  for (const std::string mode : {"32-true", "bf16-mixed", "16-mixed", "bf16-true"}) {
    const auto experiment = experiment_of({"precision.mode=" + mode, "training.max_steps=60"});
    const auto run = new_run(mode);
    losses[mode] = summary_figure(train_quietly(*experiment, *run), "val/loss");
  }
  for (const auto& [mode, loss] : losses) {
    INFO(mode);
    CHECK(loss < 0.75);
    CHECK(loss == Approx(losses["32-true"]).margin(0.05));
  }
}

TEST_CASE("an overflow leaves a step out, and a resume remembers it to the last bit", "[train][precision][resume]") {
  const tests::Folder folder;
  // A scale that float16 cannot hold at first, and that grows over its limit again and again.
  const std::vector<std::string> sets = {"precision.mode=16-mixed", "precision.scaler.init_scale=1e9",
                                         "precision.scaler.growth_interval=2", "loader.shuffle=true"};
  const auto straight = experiment_of(sets);
  const auto run = new_run("straight");
  const LoopResult result = train_quietly(*straight, *run);
  CHECK(summary_figure(result, "step") == 20);
  CHECK(summary_figure(result, "overflows") > 5);
  for (const char* step : {"step-000005", "step-000010"}) {
    INFO(step);
    const auto resumed = experiment_of(sets);
    const auto again = new_run("resumed");
    const LoopResult end = train_quietly(*resumed, *again, run->run_dir() + "/checkpoints/" + step);
    CHECK(tests::same_bits(*straight, *resumed));
    CHECK(summary_figure(end, "overflows") == summary_figure(result, "overflows"));
  }
  const auto plain = experiment_of({"precision.mode=16-mixed"});
  const auto other = new_run("plain");
  CHECK(summary_figure(train_quietly(*plain, *other), "overflows") < summary_figure(result, "overflows"));
}

TEST_CASE("gradients that no scale makes finite are a fault in the end", "[train][precision]") {
  const tests::Folder folder;
  struct Case {
    const char* name;
    std::vector<std::string> sets;
    const char* message;
  };
  const Case cases[] = {
      {"stop",
       {"precision.mode=16-mixed"},
       "gradients overflow float16 at the loss scale 2.98e-08 at step 1; the first tensor"},
      {"skip",
       {"precision.mode=16-mixed", "faults.on_nan=skip", "faults.budget=3"},
       "faults.budget, 3 skips and rollbacks, is used up"},
      {"without a scale",
       {"precision.mode=16-mixed", "precision.scaler.enabled=false"},
       "the gradient norm is nan at step 1"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto experiment = experiment_of(c.sets);
      experiment->loss = std::make_shared<Rootless>(experiment->loss);
      const auto run = new_run("runs");
      CHECK_THROWS_WITH(train_quietly(*experiment, *run), Catch::Contains(c.message));
    }
  }
}

TEST_CASE("a loss that is not finite is a fault even where the loss is scaled", "[train][precision]") {
  const tests::Folder folder;
  const auto experiment =
      experiment_of({"precision.mode=16-mixed", "optimizer.lr=1e30", "training.clip_grad_norm=null"});
  const auto run = new_run("runs");
  CHECK_THROWS_WITH(train_quietly(*experiment, *run), Catch::Contains("the loss is ") && Catch::Contains("at step "));
}

TEST_CASE("weights in bfloat16 resume bit-identically", "[train][precision][resume]") {
  const tests::Folder folder;
  for (const char* rounding : {"true", "false"}) {
    INFO("stochastic_rounding " << rounding);
    const std::vector<std::string> sets = {"precision.mode=bf16-true",
                                           std::string("precision.stochastic_rounding=") + rounding};
    const auto straight = experiment_of(sets);
    const auto run = new_run(std::string("straight-") + rounding);
    train_quietly(*straight, *run);
    for (const auto& parameter : straight->model->parameters()) CHECK(parameter.tensor.scalar_type() == at::kBFloat16);
    const auto twice = experiment_of(sets);
    train_quietly(*twice, *new_run("twice"));
    CHECK(tests::same_bits(*straight, *twice));
    const auto resumed = experiment_of(sets);
    train_quietly(*resumed, *new_run("resumed"), run->run_dir() + "/checkpoints/step-000010");
    CHECK(tests::same_bits(*straight, *resumed));
    const auto reseeded = experiment_of({sets[0], sets[1], "precision.overrides={layers.0: 32-true}"});
    train_quietly(*reseeded, *new_run("mixed"));
    CHECK(reseeded->model->parameters().front().tensor.scalar_type() == at::kFloat);
    CHECK(reseeded->model->parameters().back().tensor.scalar_type() == at::kBFloat16);
  }
}

TEST_CASE("a schedule with a length in epochs counts the configured unit", "[train][accumulation]") {
  const std::vector<std::string> sets = {
      "training={max_epochs: 3, micro_batch_size: 8, gradient_accumulation_steps: 2}", "lr_scheduler=cosine"};
  const auto total = [&](const std::string& more) {
    const auto experiment = experiment_of({sets[0], sets[1], more});
    return experiment->recipe.at("lr_scheduler.total_steps").as_integer();
  };
  // 60 samples: 8 micro-batches and 4 steps an epoch.
  CHECK(total("accumulation.adjust_scheduler=true") == 12);
  CHECK(total("accumulation.adjust_scheduler=false") == 24);
}

TEST_CASE("philox gives the published numbers", "[train][precision]") {
  using Words = std::array<std::uint32_t, 4>;
  // Random123's known answers for philox4x32-10.
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("stochastic rounding is right in the mean and leaves alone what fits", "[train][precision]") {
  constexpr std::int64_t kCount = 100'000;
  const auto rounded = [](const at::Tensor& source, std::uint64_t seed, std::uint64_t stream) {
    at::Tensor target = at::empty(source.sizes(), at::kBFloat16);
    round_stochastically(source, target, seed, stream, 3);
    return target;
  };
  // 1 + 2^-9 lies a quarter of the way from 1 to the next bfloat16, 1 + 2^-7.
  const at::Tensor quarter = at::full({kCount}, 1.0 + 0x1p-9);
  const double mean = rounded(quarter, 7, 0).to(at::kDouble).mean().item<double>();
  const double deviation = 0x1p-7 * std::sqrt(0.25 * 0.75 / static_cast<double>(kCount));
  CHECK(std::abs(mean - (1.0 + 0x1p-9)) < 5 * deviation);
  const at::Tensor fits = at::linspace(-3, 3, 1001).to(at::kBFloat16);
  CHECK(rounded(fits.to(at::kFloat), 7, 0).equal(fits));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(rounded(at::full({9}, infinity), 7, 0).to(at::kDouble).eq(infinity).all().item<bool>());
  CHECK(rounded(at::full({9}, std::nan("")), 7, 0).isnan().all().item<bool>());

  const at::Tensor values = at::randn({30'001});
  const at::Tensor first = rounded(values, 7, 0);
  CHECK(first.equal(rounded(values, 7, 0)));
  CHECK_FALSE(first.equal(rounded(values, 7, 1)));
  CHECK_FALSE(first.equal(rounded(values, 8, 0)));
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  CHECK(first.equal(rounded(values, 7, 0)));
  at::set_num_threads(threads);
}

TEST_CASE("steps too small for bfloat16 are not lost", "[train][precision]") {
  // Each step asks for 2^-12 of a weight of 1: rounding to the nearest never moves it.
  const auto weight_after = [](bool stochastic) {
    at::Tensor weight = at::full({1000}, 1.0, at::kBFloat16).set_requires_grad(true);
    Bf16MasterWeights rounded({{"w", weight}}, {stochastic, 11});
    const at::Tensor twin = rounded.for_optimizer().front().tensor;
    for (int step = 0; step < 100; ++step) {
      weight.mutable_grad() = at::full({1000}, 1.0, at::kBFloat16);
      rounded.widen();
      twin.add_(-0x1p-12);
      rounded.narrow();
    }
    return weight.detach().to(at::kDouble).mean().item<double>();
  };
  CHECK(weight_after(false) == 1.0);
  CHECK(weight_after(true) == Approx(1.0 - 100 * 0x1p-12).margin(2e-3));
}

TEST_CASE("matmul_precision reaches LibTorch", "[train][precision]") {
  using sections::precision::MatmulPrecision;
  const auto product = [](MatmulPrecision precision) {
    sections::precision::Config config;
    config.matmul_precision = precision;
    set_matmul_precision(config);
    at::manual_seed(3);
    const at::Tensor a = at::randn({128, 256}), b = at::randn({256, 128});
    return at::mm(a, b);
  };
  const at::Tensor exact = product(MatmulPrecision::kHighest);
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  product(MatmulPrecision::kHigh);
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH);
  const at::Tensor rough = product(MatmulPrecision::kMedium);
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM);
  // bfloat16 inputs are good for 2^-8 each; 256 products of about 1 add up to about 16.
  CHECK((rough - exact).abs().max().item<double>() < 0.5);
  CHECK(product(MatmulPrecision::kHighest).equal(exact));
}

}  // namespace runner::train
