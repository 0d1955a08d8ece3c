// The fused batch norm and Winograd's convolutions against LibTorch's operations in double precision.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "components/kernels/processor.h"
#include "components/layer/fused_batch_norm.h"
#include "components/layer/winograd_conv2d.h"
#include "components/ops/kernel_policy.h"
#include "components/tensor/autocast.h"
#include "components/tensor/tensors.h"
#include "tests/support/skip.h"

using components::layer::can_use_winograd;
using components::layer::fused_batch_norm;
using components::layer::winograd_conv2d;

namespace {

at::Tensor images(std::initializer_list<std::int64_t> shape, at::ScalarType type = at::kFloat) {
  return at::randn(shape).to(type).contiguous(shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                                : at::MemoryFormat::Contiguous);
}

at::Tensor learns(const at::Tensor& tensor) { return tensor.detach().clone().set_requires_grad(true); }
at::Tensor doubled(const at::Tensor& tensor) { return learns(tensor.to(at::kDouble)); }

/// The largest difference by the largest entry.
double difference(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor wanted = expected.to(at::kDouble);
  const double largest = wanted.abs().max().item<double>();
  return (found.to(at::kDouble) - wanted).abs().max().item<double>() / (largest > 0 ? largest : 1.0);
}

struct NormCase {
  const char* name;
  std::vector<std::int64_t> shape;
  bool affine, addend, relu;
};

void need_winograd(bool low) {
  const auto& cpu = components::kernels::processor();
  if (!cpu.avx512) tests::skip_on_this_processor("this processor has no AVX-512 F, BW, DQ and VL");
  if (low && !cpu.avx512_bf16) tests::skip_on_this_processor("this processor has no AVX-512 BF16");
}

}  // namespace

TEST_CASE("the fused batch norm gives the gradients of the plain operations in double precision",
          "[layer][fused][batch_norm]") {
  const NormCase cases[] = {
      {"alone", {3, 64, 5, 4}, true, false, false},
      {"with a ReLU", {3, 80, 5, 4}, true, false, true},
      {"a residual sum", {2, 16, 4, 4}, true, true, false},
      {"a residual sum with a ReLU", {2, 128, 7, 3}, true, true, true},
      {"channels that fill no vector", {4, 5, 3, 3}, true, true, true},
      {"nothing learned", {4, 21, 3, 3}, false, false, true},
      {"features", {9, 37}, true, false, true},
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double bound = type == at::kFloat ? 1e-5 : 0.02;
    for (const NormCase& c : cases) {
      DYNAMIC_SECTION(c.name << (type == at::kFloat ? "" : ", bfloat16")) {
        at::manual_seed(11);
        const auto format = c.shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
        const auto draw = [&] { return at::randn(c.shape).add(0.7).to(type).contiguous(format); };
        const at::Tensor x = learns(draw()), addend = learns(draw()), dy = draw();
        const std::int64_t channels = c.shape[1];
        at::Tensor weight, bias;
        std::optional<at::Tensor> weight_d, bias_d;
        if (c.affine) {
          weight = learns(at::randn({channels}));
          bias = learns(at::randn({channels}));
          weight_d = doubled(weight);
          bias_d = doubled(bias);
        }
        const at::Tensor mean = at::zeros({channels}), var = at::full({channels}, 1.0);
        const at::Tensor mean_d = mean.to(at::kDouble), var_d = var.to(at::kDouble);
        const components::layer::BatchNormArguments arguments{
            x, weight, bias, mean, var, c.addend ? &addend : nullptr, c.relu, 0.2, 1e-3};
        REQUIRE(can_fuse(arguments));
        const at::Tensor y = fused_batch_norm(arguments);
        y.backward(dy);

        const at::Tensor x_d = doubled(x), addend_d = doubled(addend);
        at::Tensor y_d = at::batch_norm(x_d, weight_d, bias_d, mean_d, var_d, true, 0.2, 1e-3, false);
        if (c.addend) y_d = at::add(y_d, addend_d);
        if (c.relu) y_d = at::relu(y_d);
        // Where bfloat16 rounds a sum to the other side of zero no gradient agrees: the mask is that of the output.
        y_d.backward(c.relu && type != at::kFloat ? dy.to(at::kDouble) * (y.to(at::kDouble) > 0) : dy.to(at::kDouble));

        CHECK(difference(y.detach(), y_d.detach()) <= bound);
        CHECK(difference(mean, mean_d) <= 1e-5);
        CHECK(difference(var, var_d) <= 1e-5);
        CHECK(difference(x.grad(), x_d.grad()) <= bound);
        if (c.affine) {
          CHECK(difference(weight.grad(), weight_d->grad()) <= bound);
          CHECK(difference(bias.grad(), bias_d->grad()) <= bound);
        }
        if (c.addend) CHECK(difference(addend.grad(), addend_d.grad()) <= bound);
        CHECK(y.suggest_memory_format() == x.suggest_memory_format());
      }
    }
  }
}

TEST_CASE("a mean far from zero costs no digits of the variance", "[layer][fused][batch_norm]") {
  const at::Tensor x = images({4, 16, 8, 8}).add(1000.0), none;
  const at::Tensor y = fused_batch_norm({x, none, none, none, none, nullptr, false, 0.1, 1e-5});
  const at::Tensor y_d = at::batch_norm(x.to(at::kDouble), {}, {}, {}, {}, true, 0.1, 1e-5, false);
  CHECK(difference(y, y_d) <= 1e-3);  // of x itself 6e-5 are rounding
}

TEST_CASE("Winograd's convolution gives the gradients of the plain one in double precision",
          "[layer][fused][winograd][avx512]") {
  struct Case {
    const char* name;
    std::int64_t samples, in, out, height, width;
  };
  static constexpr Case cases[] = {
      {"whole tiles", 2, 64, 64, 8, 8},
      {"cut tiles", 3, 64, 128, 5, 7},
      {"one pixel", 1, 128, 64, 1, 1},
      {"an odd number of tiles", 1, 64, 64, 5, 5},
      {"more tiles than fit at a time", 2, 64, 64, 26, 18},
      {"shared sums", 2, 64, 256, 4, 4},
  };
  using components::AutocastOptions;
  const auto type = GENERATE(AutocastOptions::Type::kNone, AutocastOptions::Type::kBf16);
  const bool low = type == AutocastOptions::Type::kBf16;
  need_winograd(low);
  // Transformed tiles are rounded to bfloat16 too, which has 8 bits.
  const double bound = low ? 0.02 : 2e-6;
  const components::Autocast autocast({type});
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name << (low ? ", bfloat16" : "")) {
      at::manual_seed(3);
      const at::ScalarType images_type = low ? at::kBFloat16 : at::kFloat;
      const at::Tensor x = learns(images({c.samples, c.in, c.height, c.width}, images_type));
      const at::Tensor weight = learns(at::randn({c.out, c.in, 3, 3}).mul(0.05));
      const auto& cpu = components::kernels::processor();
      const bool is_faster = !low || (cpu.multiplies_bf16_faster() && !cpu.amx_bf16);
      REQUIRE(can_use_winograd(x, weight) == is_faster);
      if (!is_faster) continue;
      const at::Tensor dy = images({c.samples, c.out, c.height, c.width}, images_type);
      const at::Tensor y = winograd_conv2d(x, weight);
      y.backward(dy);
      const at::Tensor x_d = doubled(x), weight_d = doubled(weight);
      const at::Tensor y_d = at::conv2d(x_d, weight_d, {}, 1, 1);
      y_d.backward(dy.to(at::kDouble));
      CHECK(y.scalar_type() == images_type);
      CHECK(difference(y.detach(), y_d.detach()) <= bound);
      CHECK(difference(x.grad(), x_d.grad()) <= bound);
      CHECK(difference(weight.grad(), weight_d.grad()) <= bound);
      CHECK(y.is_contiguous(at::MemoryFormat::ChannelsLast));

      const at::Tensor again = learns(weight);
      winograd_conv2d(x, again).backward(dy);
      CHECK(again.grad().equal(weight.grad()));
    }
  }
}

TEST_CASE("Winograd's convolution is taken where it knows the tensors, and may be turned off",
          "[layer][winograd][avx512]") {
  need_winograd(false);
  const at::Tensor x = images({1, 64, 4, 4}), weight = at::randn({64, 64, 3, 3});
  CHECK(can_use_winograd(x, weight));
  CHECK_FALSE(can_use_winograd(x.contiguous(), weight));
  CHECK_FALSE(can_use_winograd(x.to(at::kBFloat16), weight));
  CHECK_FALSE(can_use_winograd(x, at::randn({64, 64, 1, 1})));
  CHECK_FALSE(can_use_winograd(x, at::randn({60, 64, 3, 3})));
  components::set_fused_kernels(false);
  CHECK_FALSE(can_use_winograd(x, weight));
  components::set_fused_kernels(true);
}
