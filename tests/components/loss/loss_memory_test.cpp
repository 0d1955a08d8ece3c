// Cross entropy over a vocabulary whose logits are larger than all else: what it allocates, and that it is the same.

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>
#include <c10/core/GradMode.h>
#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "components/loss/chunked_cross_entropy.h"
#include "components/loss/loss.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "tests/support/blocks.h"
#include "tests/support/torch/memory_counter_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::AutocastOptions;
using components::TensorMap;

constexpr std::int64_t kRows = 512, kWidth = 64, kClasses = 40'000;  // logits of 78 MiB in float32
constexpr std::int64_t kMiB = 1 << 20, kLogits = kRows * kClasses;

std::shared_ptr<components::loss::Loss> loss_of(const std::string& recipe) {
  const auto node = tests::block("loss", recipe);
  runner::core::Diagnostics diagnostics;
  const components::TensorSpec output{
      "output", components::Dtype::kFloat32, {components::kBatch, components::kTime, kClasses}};
  return components::loss::build(node, {{output}, tests::text_data(kClasses, 8), node, diagnostics});
}

/// Loss and gradients, and what was allocated beside the gradients.
struct Judged {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  std::int64_t peak = 0;
};

Judged judge(const components::loss::Loss& loss, const TensorMap& given, bool trains, bool fused,
             AutocastOptions::Type type = AutocastOptions::Type::kNone) {
  Judged judged;
  TensorMap tensors;
  std::vector<at::Tensor> leaves;
  for (const auto& [name, tensor] : given.items()) {
    at::Tensor leaf = tensor.detach();
    if (leaf.is_floating_point()) leaves.push_back(leaf.set_requires_grad(true));
    tensors.set(name, leaf);
  }
  components::set_fused_kernels(fused);
  const tests::MemoryCounter counter;
  {
    AutocastOptions options;
    options.type = type;
    const components::Autocast autocast(options);
    const c10::AutoGradMode mode(trains);
    const at::Tensor sum = loss.sum(tensors, 0.5);
    judged.loss = sum.item<double>();
    if (trains) (sum * 0.5).backward();
  }
  components::set_fused_kernels(true);
  judged.peak = counter.peak_bytes();
  for (const at::Tensor& leaf : leaves) {
    judged.gradients.push_back(leaf.grad());
    if (trains) judged.peak -= static_cast<std::int64_t>(leaf.grad().nbytes());
  }
  return judged;
}

}  // namespace

TEST_CASE("cross entropy allocates no second logits", "[loss][cross_entropy]") {
  at::manual_seed(3);
  at::Tensor target = at::randint(kClasses, {2, kRows / 2}, at::kLong);
  target.select(1, 5).fill_(-100);
  const at::Tensor hidden = at::randn({2, kRows / 2, kWidth}), weight = at::randn({kClasses, kWidth}) * 0.3;
  for (const char* recipe : {"cross_entropy", "{type: cross_entropy, label_smoothing: 0.1}"}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const bool projected : {false, true}) {
        for (const bool trains : {false, true}) {
          DYNAMIC_SECTION(recipe << (type == at::kFloat ? ", float32" : ", bfloat16")
                                 << (projected ? ", projected" : ", of logits") << (trains ? ", with gradients" : "")) {
            TensorMap tensors;
            if (projected) {
              tensors.set(components::kHidden, hidden.to(type));
              tensors.set(components::kProjection, weight.to(type));
            } else {
              tensors.set(components::kOutput, at::matmul(hidden, weight.t()).to(type));
            }
            tensors.set(components::kTarget, target);
            const auto loss = loss_of(recipe);
            REQUIRE(loss != nullptr);
            const Judged expected = judge(*loss, tensors, trains, false), found = judge(*loss, tensors, trains, true);
            const double tolerance = type == at::kFloat ? 1e-5 : 2e-3;
            CHECK(found.loss == Approx(expected.loss).epsilon(tolerance));
            for (std::size_t i = 0; trains && i < expected.gradients.size(); ++i) {
              const at::Tensor a = expected.gradients[i].to(at::kFloat), b = found.gradients[i].to(at::kFloat);
              CHECK(found.gradients[i].scalar_type() == type);
              CHECK((a - b).norm().item<double>() <= (type == at::kFloat ? 1e-4 : 2e-2) * a.norm().item<double>());
            }
            // Without fused kernels it is what LibTorch takes: all logits in float32 and their softmax.
            CHECK(expected.peak >= 4 * kLogits);
            CHECK(found.peak <= (projected ? trains ? 72 : 24 : 4) * kMiB);
          }
        }
      }
    }
  }
}

TEST_CASE("cross entropy by LibTorch's operations in chunks is that of all logits", "[loss][cross_entropy]") {
  constexpr std::int64_t kFew = 4096, kMany = 6144, kNarrow = 16;  // logits of 96 MiB, in two chunks
  at::manual_seed(3);
  at::Tensor target = at::randint(kFew, {2, kMany / 2}, at::kLong);
  target.select(1, 5).fill_(-100);
  for (const double smoothing : {0.0, 0.1}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const double gradient : {0.0, 0.25}) {  // known or not
        CAPTURE(smoothing, type, gradient);
        std::array<at::Tensor, 2> hidden, weight, sum;
        for (std::size_t i : {0, 1}) {
          at::manual_seed(4);
          hidden[i] = at::randn({2, kMany / 2, kNarrow}).to(type).requires_grad_();
          weight[i] = (at::randn({kFew, kNarrow}) * 0.3).to(type).requires_grad_();
        }
        const at::Tensor logits = at::linear(hidden[0], weight[0]).to(at::kFloat).view({-1, kFew});
        sum[0] = at::cross_entropy_loss(logits, target.view({-1}), {}, at::Reduction::Sum, -100, smoothing);
        sum[1] = components::loss::chunked_cross_entropy(hidden[1], weight[1], target, {-100, smoothing, gradient});
        for (const at::Tensor& one : sum) (one * 0.25).backward();
        CHECK(sum[1].item<double>() == Approx(sum[0].item<double>()).epsilon(1e-5));
        const double tolerance = type == at::kFloat ? 1e-4 : 2e-2;
        for (const auto& inputs : {hidden, weight}) {
          const at::Tensor a = inputs[0].grad().to(at::kFloat), b = inputs[1].grad().to(at::kFloat);
          CHECK(inputs[1].grad().scalar_type() == type);
          CHECK((a - b).norm().item<double>() <= tolerance * a.norm().item<double>());
        }
        const at::NoGradGuard no_grad;
        const at::Tensor alone =
            components::loss::chunked_cross_entropy(hidden[1], weight[1], target, {-100, smoothing});
        CHECK(alone.item<double>() == sum[1].item<double>());
      }
    }
  }
}

TEST_CASE("cross entropy over 152,064 classes allocates at most 128 MB", "[.large][loss][cross_entropy]") {
  constexpr std::int64_t kMany = 152'064, kPositions = 2048, kFeatures = 896, kMost = 128'000'000;
  at::manual_seed(3);
  const at::Tensor hidden = at::randn({1, kPositions, kFeatures}), weight = at::randn({kMany, kFeatures}) * 0.03;
  const at::Tensor target = at::randint(kMany, {1, kPositions}, at::kLong);
  const auto loss = loss_of("cross_entropy");
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const bool trains : {false, true}) {
      TensorMap projected, whole;
      projected.set(components::kHidden, hidden.to(type));
      projected.set(components::kProjection, weight.to(type));
      projected.set(components::kTarget, target);
      whole.set(components::kOutput, at::matmul(hidden.to(type), weight.to(type).t()));
      whole.set(components::kTarget, target);
      const std::int64_t of_projected = judge(*loss, projected, trains, true).peak;
      const std::int64_t of_whole = judge(*loss, whole, trains, true).peak;
      CAPTURE(type, trains, of_projected, of_whole);
      CHECK(of_projected <= kMost);
      CHECK(of_whole <= kMost);
      WARN(c10::toString(type) << (trains ? ", with gradients: " : ": ") << of_projected << " projected, " << of_whole
                               << " of logits");
    }
  }
}
