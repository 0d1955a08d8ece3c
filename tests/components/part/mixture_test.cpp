// A mixture of experts by plain operations against its definition, position by position in double precision.

#include "components/part/mixture.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "components/part/weight.h"
#include "components/tensor/meta_pass.h"
#include "components/tensor/tensors.h"

namespace {

using components::part::Mixture;
using components::part::MixtureOptions;
using components::part::Routing;

constexpr std::int64_t kWidth = 6, kHidden = 5;

struct Subject {
  explicit Subject(std::int64_t experts, std::int64_t chosen, bool normalized)
      : declared(drawn),
        mixture(declared, "mlp",
                MixtureOptions{.width = kWidth,
                               .hidden = kHidden,
                               .experts = experts,
                               .chosen = chosen,
                               .normalized = normalized,
                               .activation = components::part::Activation::kSilu,
                               .in = components::part::normal(0.7),
                               .out = components::part::normal(0.7)}) {}

  at::Tensor forward(const at::Tensor& x_NC) const { return mixture.forward(x_NC, mixture.routing(x_NC)); }
  at::Tensor weight(std::size_t i) const { return declared.parameters()[i].tensor; }

  components::part::DrawnWeights drawn;
  components::part::Declared declared;
  Mixture mixture;
};

/// By the definition: the experts with the largest probabilities, each by its own matrices.
at::Tensor defined(const Subject& subject, const at::Tensor& x_NC) {
  const MixtureOptions& o = subject.mixture.options();
  const at::Tensor router = subject.weight(0).detach().to(at::kDouble), fc = subject.weight(1).detach().to(at::kDouble),
                   proj = subject.weight(2).detach().to(at::kDouble), x = x_NC.to(at::kDouble);
  std::vector<at::Tensor> rows;
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    const at::Tensor p_E = at::softmax(router.matmul(x[n]), 0);
    const auto [weights, experts] = p_E.sort(0, /*descending=*/true);
    const double sum = o.normalized ? weights.narrow(0, 0, o.chosen).sum().item<double>() : 1.0;
    at::Tensor row = at::zeros({kWidth}, at::kDouble);
    for (std::int64_t k = 0; k < o.chosen; ++k) {
      const auto e = experts[k].item<std::int64_t>();
      const at::Tensor hidden = fc[e].matmul(x[n]);
      const at::Tensor active = at::silu(hidden.narrow(0, 0, kHidden)) * hidden.narrow(0, kHidden, kHidden);
      row += proj[e].matmul(active) * (weights[k].item<double>() / sum);
    }
    rows.push_back(row);
  }
  return at::stack(rows);
}

}  // namespace

TEST_CASE("a mixture is the weighted sum of the experts that its router chooses", "[part][mixture]") {
  struct Case {
    std::int64_t experts, chosen, positions;
    bool normalized;
  };
  for (const Case& c : {Case{4, 2, 11, true}, Case{4, 2, 11, false}, Case{1, 1, 3, true}, Case{9, 1, 4, false},
                        Case{3, 3, 5, true}, Case{16, 2, 1, true}}) {
    INFO(c.experts << " experts, " << c.chosen << " chosen, " << c.positions << " positions");
    at::manual_seed(3);
    const Subject subject(c.experts, c.chosen, c.normalized);
    const at::Tensor x_NC = torch::randn({c.positions, kWidth});
    const at::Tensor wanted = defined(subject, x_NC);
    CHECK((subject.forward(x_NC).to(at::kDouble) - wanted).abs().max().item<double>() <
          1e-5 * wanted.abs().max().item<double>());
  }
}

TEST_CASE("an expert without a position gets a gradient of zeros", "[part][mixture]") {
  at::manual_seed(3);
  const Subject subject(6, 1, true);
  const at::Tensor x_NC = torch::randn({2, kWidth}).set_requires_grad(true);
  const Routing routing = subject.mixture.routing(x_NC);
  subject.forward(x_NC).sum().backward();
  std::vector<bool> chosen(6, false);
  for (std::int64_t n = 0; n < 2; ++n)
    chosen[static_cast<std::size_t>(routing.experts_NK[n][0].item<std::int64_t>())] = true;
  for (std::size_t e = 0; e < chosen.size(); ++e) {
    for (const std::size_t weight : {1, 2}) {
      const at::Tensor gradient = subject.weight(weight).grad()[static_cast<std::int64_t>(e)];
      CHECK((gradient.abs().max().item<double>() > 0) == chosen[e]);
    }
  }
  CHECK(x_NC.grad().abs().max().item<double>() > 0);
}

TEST_CASE("the meta device shares out the positions of a mixture", "[part][mixture]") {
  const components::MetaPass pass([](std::int64_t) {});
  components::part::MetaWeights shapes;
  components::part::Declared declared(shapes);
  const Mixture mixture(declared, "mlp",
                        MixtureOptions{.width = kWidth,
                                       .hidden = kHidden,
                                       .experts = 4,
                                       .chosen = 2,
                                       .normalized = true,
                                       .activation = components::part::Activation::kSilu,
                                       .in = components::part::normal(0.1),
                                       .out = components::part::normal(0.1)});
  const at::Tensor x_NC = at::zeros({7, kWidth}, at::TensorOptions().device(at::kMeta));
  const Routing routing = mixture.routing(x_NC);
  CHECK(mixture.rows_of(routing).counts == std::vector<std::int64_t>{3, 4, 3, 4});
  CHECK(mixture.forward(x_NC, routing).sizes() == x_NC.sizes());
}

TEST_CASE("a balance counts the positions that are no padding", "[part][mixture]") {
  // Two experts, one of which is chosen. By hand: positions 0 and 1 go to expert 0, position 2 to expert 1.
  const Routing routing{at::tensor({0.75F, 0.25F, 0.5F, 0.5F, 0.25F, 0.75F}).view({3, 2}),
                        at::tensor({1.0F, 1.0F, 1.0F}).view({3, 1}),
                        at::tensor(std::vector<std::int64_t>{0, 0, 1}).view({3, 1})};
  using components::part::balance_loss;
  using components::part::balance_sums;
  // 2 (2/3 * 1.5/3 + 1/3 * 1.5/3) = 1
  CHECK(balance_loss(balance_sums(routing, {}), 1).item<double>() == Approx(1.0));
  // Without position 2: 2 (1 * 1.25/2 + 0) = 1.25
  const at::Tensor real = at::tensor(std::vector<std::int64_t>{1, 1, 0}).to(at::kBool);
  CHECK(balance_loss(balance_sums(routing, real), 1).item<double>() == Approx(1.25));
  // Of two layers: the sums are added before the product. 2 (4/5 * 2.75/5 + 1/5 * 2.25/5) = 1.06
  CHECK(balance_loss(balance_sums(routing, {}) + balance_sums(routing, real), 1).item<double>() == Approx(1.06));
  // Nothing real: no number divided by zero.
  CHECK(balance_loss(balance_sums(routing, at::zeros({3}, at::kBool)), 1).item<double>() == 0.0);
}

TEST_CASE("experts in fewer bits compute as those that they stand for", "[part][mixture][quantization]") {
  using components::part::QuantizedForm;
  constexpr std::int64_t kExperts = 3;
  const MixtureOptions options{.width = kWidth,
                               .hidden = 4,
                               .experts = kExperts,
                               .chosen = 2,
                               .activation = components::part::Activation::kSilu,
                               .in = components::part::normal(0.7),
                               .out = components::part::normal(0.7)};
  for (const auto kind : {QuantizedForm::Kind::kNf4, QuantizedForm::Kind::kInt8}) {
    at::manual_seed(5);
    components::part::DrawnWeights drawn;
    components::part::Declared whole(drawn);
    const Mixture mixture(whole, "mlp", options);
    const std::vector<std::int64_t> fc(2 * kExperts, options.hidden), proj(kExperts, options.width);
    const components::part::QuantizedWeights::Forms forms = {{"mlp_experts_fc.weight", {.kind = kind, .rows = fc}},
                                                             {"mlp_experts_proj.weight", {.kind = kind, .rows = proj}}};
    components::part::QuantizedWeights smaller(drawn, forms);
    components::part::Declared small(smaller);
    const Mixture quantized(small, "mlp", options);
    CHECK(whole.parameters().size() == 3);
    REQUIRE(small.parameters().size() == 1);
    const at::NoGradGuard no_grad;
    small.parameters()[0].tensor.copy_(whole.parameters()[0].tensor);
    const components::part::ExpertStack* const stacks[] = {&quantized.experts_fc(), &quantized.experts_proj()};
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor& parameter = whole.parameters()[i + 1].tensor;
      REQUIRE(stacks[i]->quantized() != nullptr);
      stacks[i]->quantized()->fill(parameter.flatten(0, 1));
      std::vector<at::Tensor> each;
      for (std::int64_t e = 0; e < kExperts; ++e) each.push_back(stacks[i]->matrix(e, false));
      CHECK((at::stack(each) - parameter).abs().max().item<double>() > 0);
      parameter.copy_(at::stack(each));
    }
    const at::AutoGradMode with_grad(true);
    const at::Tensor x = torch::randn({9, kWidth}).requires_grad_(), same = x.detach().clone().requires_grad_();
    const at::Tensor one = mixture.forward(x, mixture.routing(x)),
                     other = quantized.forward(same, quantized.routing(same));
    CHECK((one - other).abs().max().item<double>() < 1e-5);
    one.square().sum().backward();
    other.square().sum().backward();
    CHECK((x.grad() - same.grad()).abs().max().item<double>() < 1e-4 * x.grad().abs().max().item<double>());
  }
}
