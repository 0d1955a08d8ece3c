// The fused blocks and the fused loss of decoders against the plain operations in double precision: loss and every
// gradient. Tasks of one seed leave out the same elements where there is dropout.

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/kernels/product.h"
#include "components/loss/loss.h"
#include "components/model/model.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::NamedTensor;
using components::TensorMap;
using components::model::Model;

/// The plain operations while it lives.
struct Plain {
  Plain() { components::set_fused_kernels(false); }
  ~Plain() { components::set_fused_kernels(true); }
};

/// Matrix products and attention as on a processor without kernels of our own.
struct LibTorchProducts {
  LibTorchProducts() { components::kernels::pretend_no_product_kernel(true); }
  ~LibTorchProducts() { components::kernels::pretend_no_product_kernel(false); }
};

/// A processor with or without units for bfloat16.
struct Bf16Units {
  explicit Bf16Units(bool has) { components::pretend_bf16_units(has); }
  ~Bf16Units() { components::pretend_bf16_units(std::nullopt); }
};

struct Case {
  const char* name;
  const char* model;
  std::int64_t samples, positions, vocabulary;
};

constexpr Case kCases[] = {
    {"learned positions", "{type: gpt, n_layer: 2, n_head: 2, n_embd: 32}", 3, 16, 48},
    {"rotary positions", "{type: gpt, n_layer: 2, n_head: 4, n_embd: 64, positions: rotary}", 2, 33, 65},
    {"sizes that fill no vector", "{type: gpt, n_layer: 1, n_head: 3, n_embd: 18, positions: rotary}", 1, 7, 11},
    {"no biases", "{type: gpt, n_layer: 2, n_head: 2, n_embd: 24, bias: false}", 2, 19, 30},
    {"a head of its own", "{type: gpt, n_layer: 1, n_head: 2, n_embd: 16, tie_embeddings: false}", 2, 9, 20},
    {"one position", "{type: gpt, n_layer: 1, n_head: 1, n_embd: 8}", 1, 1, 5},
    {"several blocks of attention", "{type: gpt, n_layer: 1, n_head: 2, n_embd: 40}", 2, 101, 37},
    {"dropout", "{type: gpt, n_layer: 2, n_head: 2, n_embd: 40, dropout: 0.3}", 2, 101, 37},
    {"dropout, no biases", "{type: gpt, n_layer: 2, n_head: 3, n_embd: 18, bias: false, dropout: 0.5}", 3, 7, 11},
    {"grouped heads", "{type: llama, n_layer: 2, n_head: 6, n_kv_head: 2, n_embd: 48}", 2, 101, 37},
    {"one head of keys, biases, a tied head",
     "{type: llama, n_layer: 2, n_head: 4, n_kv_head: 1, n_embd: 24, attention_bias: all, mlp_bias: true, "
     "tie_embeddings: true}",
     3, 19, 30},
    {"heads wider than the stream, GeGLU",
     "{type: llama, n_layer: 1, n_head: 3, n_embd: 20, head_dim: 14, attention_bias: qkv, activation: gelu}", 2, 33,
     20},
    {"dropout of grouped attention",
     "{type: llama, n_layer: 1, n_head: 4, n_kv_head: 2, n_embd: 32, attention_dropout: 0.4}", 2, 50, 20},
    {"a window that holds the text", "{type: llama, n_layer: 1, n_head: 2, n_embd: 16, sliding_window: 9}", 2, 9, 20},
    {"more positions than weights are kept of",
     "{type: llama, n_layer: 1, n_head: 4, n_kv_head: 2, n_embd: 16, mlp_width: 16}", 1, 1030, 20},
    {"as many, with dropout", "{type: gpt, n_layer: 1, n_head: 2, n_embd: 16, dropout: 0.2}", 1, 1030, 20},
    {"a window over several blocks",
     "{type: llama, n_layer: 1, n_head: 4, n_kv_head: 2, n_embd: 16, sliding_window: 70}", 2, 230, 20},
    {"a window shorter than the text", "{type: llama, n_layer: 2, n_head: 2, n_embd: 16, sliding_window: 4}", 2, 21,
     20},
};

struct Task {
  std::shared_ptr<Model> model;
  std::shared_ptr<components::loss::Loss> loss;
  at::Tensor x, y;
  double defined_loss = 0;  ///< of the last pass, by its definition: see definition()

  Task(const Case& c, std::uint64_t seed) {
    at::manual_seed(seed);
    const auto data = tests::text_data(c.vocabulary, c.positions);
    model = tests::make_model(c.model, data);
    const at::NoGradGuard no_grad;
    // As if it had been trained: norms and biases are no longer ones and zeros.
    for (const NamedTensor& parameter : model->parameters()) {
      parameter.tensor.add_(torch::randn(parameter.tensor.sizes()).mul_(0.1));
    }
    const auto node = tests::block("loss", "cross_entropy");
    runner::core::Diagnostics diagnostics;
    loss = components::loss::build(node, {model->outputs(), data, node, diagnostics});
    x = at::randint(c.vocabulary, {c.samples, c.positions}, at::kLong);
    y = at::randint(c.vocabulary, {c.samples, c.positions}, at::kLong);
    if (c.positions > 2) y.narrow(1, 0, 2).fill_(-100);
  }

  void to_double() {
    for (const NamedTensor& parameter : model->parameters())
      parameter.tensor.set_data(parameter.tensor.to(at::kDouble));
  }

  /// As the stepper does it. `foreseen`: what the loss is told its gradient will be.
  double forward_backward(bool bf16 = false, double gradient = 0.25, double foreseen = 0.25) {
    TensorMap tensors;
    tensors.set(components::kInput, x);
    at::Tensor sum;
    {
      using components::AutocastOptions;
      const components::Autocast autocast({bf16 ? AutocastOptions::Type::kBf16 : AutocastOptions::Type::kNone});
      model->forward_for_loss(tensors);
      defined_loss = definition(tensors.at(components::kHidden), tensors.at(components::kProjection));
      tensors.set(components::kTarget, y);
      sum = loss->sum(tensors, foreseen);
    }
    torch::autograd::backward({sum}, {at::scalar_tensor(gradient, sum.options().requires_grad(false))});
    return sum.item<double>();
  }

 private:
  /// The sum over the targets of log(sum of e^logit) - the target's logit, in double precision, without any loss's
  /// code.
  double definition(const at::Tensor& hidden, const at::Tensor& projection) const {
    const at::NoGradGuard no_grad;
    const at::Tensor weight_VC = projection.to(at::kDouble);
    const at::Tensor logits_NV = at::matmul(hidden.to(at::kDouble).reshape({-1, weight_VC.size(1)}), weight_VC.t());
    const std::vector<double> logits = tests::to_numbers(logits_NV);
    const auto classes = static_cast<std::size_t>(logits_NV.size(1));
    double sum = 0;
    for (std::size_t row = 0; row < logits.size() / classes; ++row) {
      const auto target = y.view({-1})[static_cast<std::int64_t>(row)].item<std::int64_t>();
      if (target < 0) continue;
      double of_exponentials = 0;
      for (std::size_t i = 0; i < classes; ++i) of_exponentials += std::exp(logits[row * classes + i]);
      sum += std::log(of_exponentials) - logits[row * classes + static_cast<std::size_t>(target)];
    }
    return sum;
  }
};

/// What rounding to bfloat16 may change, as a share of the largest number. A block rounds on its way forward what is
/// normed (2), four weights, the results of four products, q, k and v, scores, probabilities, the mixed values and the
/// GELU's (15 in all); on its way back the gradients that go into products and that come out of them (11). At the ends
/// the hidden rows, the projection, logits and two gradients are rounded (5). Each moves a number by at most 2^-8 of
/// itself, 2^-8 / sqrt(3) as a standard deviation; those of n roundings, which know nothing of each other, add up to
/// sqrt(n) times that. Three deviations are allowed.
double bf16_bound(const Model& model) {
  const auto layers = static_cast<double>(model.blocks().size() - 2);  // embeddings and head
  return 3 * 0x1p-8 * std::sqrt((26 * layers + 5) / 3);
}

/// The largest difference of a gradient, by the largest entry.
void check_gradients(const Task& found, const Task& expected, double bound) {
  const auto got = found.model->parameters(), wanted = expected.model->parameters();
  REQUIRE(got.size() == wanted.size());
  double all = 0;
  for (const NamedTensor& parameter : wanted) {
    all = std::max(all, parameter.tensor.grad().abs().max().item<double>());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(got[i].name);
    REQUIRE(got[i].tensor.grad().defined());
    CHECK_FALSE(got[i].tensor.grad().is_sparse());
    const at::Tensor reference = wanted[i].tensor.grad().to(at::kDouble);
    const double largest = std::max(reference.abs().max().item<double>(), 1e-3 * all);
    CHECK((got[i].tensor.grad().to(at::kDouble) - reference).abs().max().item<double>() <= bound * largest);
  }
}

Task reference(const Case& c) {
  const Plain plain;
  Task task(c, 5);
  task.to_double();
  task.forward_backward();
  return task;
}

}  // namespace

TEST_CASE("the fused kernels give the gradients of the plain operations in double precision", "[model][fused]") {
  for (const Case& c : kCases) {
    DYNAMIC_SECTION(c.name) {
      const Task expected = reference(c);
      const double bound = bf16_bound(*expected.model);
      const auto check = [&] {
        Task fused(c, 5);
        CHECK(fused.forward_backward() == Approx(expected.defined_loss).epsilon(2e-6));
        check_gradients(fused, expected, 2e-5);
        // What bfloat16 loses, the plain operations lose too.
        const Bf16Units units(true);
        Task low(c, 5);
        CHECK(low.forward_backward(true) == Approx(expected.defined_loss).epsilon(bound));
        check_gradients(low, expected, bound);
      };
      check();
      {
        const LibTorchProducts products;
        check();
      }
      Task plain_low(c, 5);
      {
        const Plain plain;
        plain_low.forward_backward(true);
      }
      check_gradients(plain_low, expected, bound);
    }
  }
}

TEST_CASE("a processor without units for bfloat16 computes in float32 under bf16-mixed", "[model][fused]") {
  const Bf16Units none(false);
  Task mixed(kCases[1], 5), full(kCases[1], 5);
  CHECK(mixed.forward_backward(true) == full.forward_backward(false));
  const auto a = mixed.model->parameters(), b = full.model->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].tensor.grad().equal(b[i].tensor.grad()));
}

TEST_CASE("a second backward pass adds, and a gradient that was not foreseen is scaled", "[model][fused]") {
  const Case& c = kCases[1];
  Task once(c, 5), twice(c, 5);
  once.forward_backward(false, 0.5, 0.5);
  twice.forward_backward(false, 0.25, 0.25);
  twice.forward_backward(false, 0.25, 1.0);
  check_gradients(twice, once, 1e-5);
}

TEST_CASE("the same bits come out twice", "[model][fused]") {
  for (const Case& c : {kCases[1], kCases[7]}) {
    for (const bool bf16 : {false, true}) {
      Task one(c, 5);
      const double loss = one.forward_backward(bf16);
      Task other(c, 5);
      CHECK(loss == other.forward_backward(bf16));
      const auto a = one.model->parameters(), b = other.model->parameters();
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].tensor.grad().equal(b[i].tensor.grad()));
    }
  }
}

TEST_CASE("dropout is another one in each pass, and none in an evaluation", "[model][fused]") {
  const Case& c = kCases[7];
  Task task(c, 5);
  const at::NoGradGuard no_grad;
  const at::Tensor first = tests::forward(*task.model, task.x);
  CHECK_FALSE(tests::forward(*task.model, task.x).equal(first));
  task.model->set_training(false);
  const at::Tensor evaluated = tests::forward(*task.model, task.x);
  CHECK(tests::forward(*task.model, task.x).equal(evaluated));
  const Plain plain;
  CHECK((tests::forward(*task.model, task.x) - evaluated).abs().max().item<double>() <=
        1e-5 * evaluated.abs().max().item<double>());
}

TEST_CASE("frozen weights get no gradient, and the others theirs", "[model][fused]") {
  for (const Case& c : {kCases[0], kCases[3], kCases[7], kCases[9], kCases[10]}) {
    for (const bool bf16 : {false, true}) {
      Task all(c, 5);
      all.forward_backward(bf16);
      const auto expected = all.model->parameters();
      // One at a time, and then each second one.
      for (std::size_t only = 0; only <= expected.size(); ++only) {
        const auto trains = [&](std::size_t i) { return only < expected.size() ? i == only : i % 2 == 1; };
        Task some(c, 5);
        const auto parameters = some.model->parameters();
        for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].tensor.set_requires_grad(trains(i));
        some.forward_backward(bf16);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          INFO(c.name << ", bf16 " << bf16 << ", trained " << only << ": " << parameters[i].name);
          REQUIRE(parameters[i].tensor.grad().defined() == trains(i));
          if (trains(i)) CHECK(parameters[i].tensor.grad().equal(expected[i].tensor.grad()));
        }
      }
    }
  }
}

TEST_CASE("an evaluation gives what training gives, to rounding", "[model][fused]") {
  const Case& c = kCases[1];
  Task task(c, 5);
  const at::Tensor trained = tests::forward(*task.model, task.x).detach();
  task.model->set_training(false);
  const at::NoGradGuard no_grad;
  CHECK(tests::forward(*task.model, task.x).equal(trained));
  const Plain plain;
  const at::Tensor expected = tests::forward(*task.model, task.x);
  CHECK((trained - expected).abs().max().item<double>() <= 1e-5 * expected.abs().max().item<double>());
}
