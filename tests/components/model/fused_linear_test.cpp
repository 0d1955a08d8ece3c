#include "components/model/fused_linear.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "components/tensor/tensors.h"

using components::model::fused_linear;

TEST_CASE("one node is bitwise equal to linear and relu", "[model][fused_linear]") {
  struct Case {
    const char* name;
    std::int64_t samples, in, out;
    bool bias, relu, input_has_gradient;
  };
  static constexpr Case cases[] = {
      {"a first layer", 32, 32, 64, true, true, false}, {"a hidden layer", 32, 64, 48, true, true, true},
      {"a last layer", 32, 64, 1, true, false, true},   {"without a bias", 7, 5, 3, false, true, true},
      {"one sample", 1, 5, 3, true, true, true},        {"a single weight", 2, 1, 1, false, false, false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      std::vector<at::Tensor> fused{at::randn({c.samples, c.in}), at::randn({c.out, c.in}), at::randn({c.out})}, plain;
      for (const at::Tensor& tensor : fused) plain.push_back(tensor.clone());
      for (auto* tensors : {&fused, &plain}) {
        tensors->at(0).set_requires_grad(c.input_has_gradient);
        tensors->at(1).set_requires_grad(true);
        tensors->at(2).set_requires_grad(true);
      }
      const at::Tensor y = fused_linear(fused[0], fused[1], c.bias ? fused[2] : at::Tensor(), c.relu);
      const std::optional<at::Tensor> bias = c.bias ? std::optional<at::Tensor>(plain[2]) : std::nullopt;
      at::Tensor expected = at::linear(plain[0], plain[1], bias);
      if (c.relu) expected = at::relu(expected);
      CHECK(y.equal(expected));
      const at::Tensor weights = at::randn(y.sizes());
      (y * weights).sum().backward();
      (expected * weights).sum().backward();
      for (std::size_t i = 0; i < fused.size(); ++i) {
        REQUIRE(fused[i].grad().defined() == plain[i].grad().defined());
        if (plain[i].grad().defined()) CHECK(fused[i].grad().equal(plain[i].grad()));
      }
    }
  }
}

TEST_CASE("nothing is recorded where no gradient is asked for", "[model][fused_linear]") {
  const at::Tensor x = at::randn({2, 3}), weight = at::randn({4, 3}).set_requires_grad(true);
  CHECK(fused_linear(x, weight, {}, true).requires_grad());
  const at::NoGradGuard no_grad;
  CHECK_FALSE(fused_linear(x, weight, {}, true).requires_grad());
}
