#include "components/tensor/meta_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/nll_loss2d.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"

namespace components {
namespace {

constexpr std::int64_t kFloats = 4 * 64 * 32;  // bytes of [64, 32] in float32

at::Tensor meta(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions().device(at::kMeta)); }

/// Bytes that are held, and the most of them, since the last mark.
struct Count {
  std::int64_t held = 0, peak = 0;
  MetaPass::Observer observer() {
    return [this](std::int64_t bytes) {
      held += bytes;
      peak = std::max(peak, held);
    };
  }
};

TEST_CASE("a pass over ordinary operations is counted without a formula", "[memory]") {
  const at::Tensor x = meta({64, 32}).set_requires_grad(true);
  Count count;
  const MetaPass pass(count.observer());
  at::Tensor y = at::tanh(x) * at::sigmoid(x);
  CHECK(count.held == 3 * kFloats);  // both factors for the backward pass, and the product
  const at::Tensor gradient = at::ones_like(y);
  y.backward(gradient);
  y = at::Tensor();
  CHECK(count.held == 2 * kFloats);  // the gradients of x and of y
  {
    const at::NoGradGuard no_grad;
    at::sigmoid(x);
  }
  CHECK(count.held == 2 * kFloats);
}

TEST_CASE("nothing is counted outside of a pass", "[memory]") {
  Count count;
  at::Tensor before = meta({64, 32}), kept;
  {
    const MetaPass pass(count.observer());
    CHECK(MetaPass::is_on());
    before = at::Tensor();
    kept = meta({64, 32});
  }
  CHECK_FALSE(MetaPass::is_on());
  kept = at::Tensor();
  CHECK(count.held == kFloats);
}

TEST_CASE("autocast lowers meta tensors in a pass, and keeps the copy of a weight", "[memory]") {
  const at::Tensor x = meta({64, 32}), weight = meta({16, 32}).set_requires_grad(true);
  Count count;
  const MetaPass pass(count.observer());
  {
    const Autocast autocast({.type = AutocastOptions::Type::kBf16});
    const at::NoGradGuard no_grad;
    CHECK(at::linear(x, weight).scalar_type() == at::kBFloat16);
    CHECK(count.peak == 2 * (64 * 32 + 16 * 32 + 64 * 16));
    CHECK(count.held == 2 * 16 * 32);
  }
  CHECK(count.held == 0);
  CHECK(at::linear(x, weight).scalar_type() == at::kFloat);
}

TEST_CASE("operations that LibTorch's meta device lacks have the CPU's shapes in a pass", "[memory]") {
  Count count;
  const MetaPass pass(count.observer());
  const at::Tensor images = meta({2, 8, 9, 7}), filters = meta({16, 8, 3, 3});
  CHECK(at::conv2d(images, filters, {}, 2, 1).sizes() == at::IntArrayRef({2, 16, 5, 4}));
  const at::Tensor x = meta({4, 6, 32}), scale = meta({32});
  CHECK(at::layer_norm(x, {32}, scale, scale).sizes() == x.sizes());
  const at::Tensor numbers = meta({3, 5}).requires_grad_();
  at::log_sigmoid(numbers).sum().backward();
  CHECK(numbers.grad().sizes() == numbers.sizes());
  CHECK(at::roll(x, {-1}, {1}).sizes() == x.sizes());
  CHECK(x.abs().sizes() == x.sizes());
  CHECK(x.gt(0).logical_not().scalar_type() == at::kBool);
  const at::Tensor scores = meta({2, 7, 3, 2}).requires_grad_(), labels = scores.detach().select(1, 0).to(at::kLong);
  at::nll_loss2d(scores, labels).backward();
  CHECK(scores.grad().sizes() == scores.sizes());
  const at::Tensor chosen = at::where(x.select(1, 0).gt(0).unsqueeze(1), x, 0.0);
  CHECK(chosen.sizes() == x.sizes());
  CHECK(chosen.scalar_type() == x.scalar_type());
  const at::Tensor q = meta({2, 4, 1000, 8});
  count.peak = count.held;
  const std::int64_t before = count.held;
  CHECK(at::scaled_dot_product_attention(q, q, q, {}, 0.0, true).sizes() == q.sizes());
  CHECK(count.peak - before == 2 * 4 * 1000 * (8 + 1) * 4);  // and no weights of 1000 x 1000
}

}  // namespace
}  // namespace components
