// Each level of the processor's kernels against formulas in double precision, at widths that fill no vector too.

#include "components/kernels/transformer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "components/kernels/processor.h"
#include "components/kernels/transformer_levels.h"
#include "runner/train/experiment/bf16_master_weights.h"

namespace {

using components::kernels::Bf16;
using components::kernels::DropMask;
using components::kernels::TransformerKernels;
using components::kernels::TransformerLevel;

std::vector<const TransformerLevel*> levels() {
  std::vector<const TransformerLevel*> all = {&components::kernels::transformer_plain};
#if defined(__x86_64__)
  if (components::kernels::processor().avx2) all.push_back(&components::kernels::transformer_avx2);
  if (components::kernels::processor().avx512) all.push_back(&components::kernels::transformer_avx512);
  if (components::kernels::processor().avx512_bf16) all.push_back(&components::kernels::transformer_bf16_avx512);
#endif
  return all;
}

std::vector<float> draw(std::size_t size, float spread, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

float value_of(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("activations, their gates and their slopes follow the formulas", "[kernels]") {
  using components::kernels::Activation;
  struct Formula {
    Activation activation;
    double (*value)(double);
  };
  const Formula formulas[] = {{Activation::kGeluTanh, gelu},
                              {Activation::kGelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
                              {Activation::kSilu, [](double x) { return x / (1 + std::exp(-x)); }},
                              {Activation::kRelu, [](double x) { return x > 0 ? x : 0; }}};
  for (const TransformerLevel* level : levels()) {
    for (const auto& [activation, value] : formulas) {
      for (const bool gated : {false, true}) {
        for (const std::int64_t width : {1, 15, 16, 37}) {
          CAPTURE(static_cast<int>(activation), gated, width);
          const std::int64_t rows = 3, of_row = gated ? 2 * width : width;
          const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
          auto x = draw(at(rows * of_row), 3);
          const auto bias = draw(at(of_row), 1, 4);
          x[0] = 90;  // far out on both sides
          x[at((rows - 1) * of_row)] = -90;
          const auto dout = draw(at(rows * width), 2, 5);
          std::vector<float> y(dout.size()), dx(x.size()), dbias(at(of_row));
          level->of_float.activate({x.data(), bias.data(), y.data(), rows, width, activation, gated});
          level->of_float.activate_backward(
              {x.data(), bias.data(), dout.data(), dx.data(), dbias.data(), rows, width, activation, gated});
          std::vector<double> sums(dbias.size());
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t c = 0; c < width; ++c) {
              const std::int64_t i = row * width + c, gate = row * of_row + c;
              const double in = static_cast<double>(x[at(gate)]) + bias[at(c)], step = 1e-5, d = dout[at(i)];
              const double up = gated ? static_cast<double>(x[at(gate + width)]) + bias[at(c + width)] : 1.0;
              const double slope = (value(in + step) - value(in - step)) / (2 * step);
              CHECK(y[at(i)] == Approx(value(in) * up).epsilon(1e-5).margin(2e-6 * (1 + std::abs(up))));
              CHECK(dx[at(gate)] == Approx(d * up * slope).epsilon(1e-4).margin(1e-5 * (1 + std::abs(d * up))));
              sums[at(c)] += dx[at(gate)];
              if (!gated) continue;
              CHECK(dx[at(gate + width)] == Approx(d * value(in)).epsilon(1e-5).margin(2e-6 * (1 + std::abs(d))));
              sums[at(c + width)] += dx[at(gate + width)];
            }
          }
          for (std::size_t i = 0; i < sums.size(); ++i) CHECK(dbias[i] == Approx(sums[i]).epsilon(1e-5).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("a causal softmax sums to one over what it may see", "[kernels]") {
  for (const TransformerLevel* level : levels()) {
    for (const std::int64_t positions : {1, 16, 21}) {
      const auto scores = draw(static_cast<std::size_t>(positions * positions), 20);
      auto probs = scores;
      level->of_float.softmax(probs.data(), 0.5F, {0, positions, positions, positions});
      for (std::int64_t t = 0; t < positions; ++t) {
        double sum = 0, of_exponentials = 0;
        const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(t * positions + i); };
        for (std::int64_t i = 0; i <= t; ++i) of_exponentials += std::exp(0.5 * scores[at(i)]);
        for (std::int64_t i = 0; i < positions; ++i) {
          const double expected = i <= t ? std::exp(0.5 * scores[at(i)]) / of_exponentials : 0.0;
          CHECK(probs[at(i)] == Approx(expected).epsilon(1e-5).margin(1e-9));
          sum += probs[at(i)];
        }
        CHECK(sum == Approx(1).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("cross entropy leaves its gradient where the logits were", "[kernels]") {
  for (const TransformerLevel* level : levels()) {
    for (const std::int64_t classes : {1, 2, 16, 43}) {
      const std::int64_t rows = 4, ignored = -100;
      const std::vector<std::int64_t> target = {0, classes - 1, ignored, classes / 2};
      const auto logits = draw(static_cast<std::size_t>(rows * classes), 5);
      auto gradient = logits;
      const double loss = level->of_float.cross_entropy(gradient.data(), target.data(), ignored, 0.25F, rows, classes);
      double expected_loss = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(r * classes + i); };
        const std::int64_t wanted = target[static_cast<std::size_t>(r)];
        double sum = 0;
        for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(logits[at(i)]));
        if (wanted != ignored) expected_loss += std::log(sum) - logits[at(wanted)];
        for (std::int64_t i = 0; i < classes; ++i) {
          const double share = std::exp(static_cast<double>(logits[at(i)])) / sum - (i == wanted ? 1 : 0);
          CHECK(gradient[at(i)] == Approx(wanted == ignored ? 0 : 0.25 * share).epsilon(1e-5).margin(1e-7));
        }
      }
      CHECK(loss == Approx(expected_loss).epsilon(1e-5).margin(1e-6));
    }
  }
}

TEST_CASE("a mask of dropout compares Philox's words with a threshold", "[kernels]") {
  const DropMask mask{0x0123'4567'89AB'CDEFU, 3, 0x6000'0000U, 1.6F, 0x1'0000'0002};
  for (const TransformerLevel* level : levels()) {
    for (const std::int64_t columns : {1, 16, 63, 64, 150}) {
      const std::int64_t rows = 3, stride = columns + 2;
      const auto from = draw(static_cast<std::size_t>(rows * stride), 1);
      auto to = from;
      level->of_float.drop(to.data(), to.data(), mask, rows, columns, stride);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < stride; ++c) {
          const auto row = static_cast<std::uint32_t>(2 + r), lane = static_cast<std::uint32_t>(c / 64 * 16 + c % 16);
          const auto words = runner::train::philox({lane, row, 1, 3}, {0x89AB'CDEFU, 0x0123'4567U});
          const bool stays = words[static_cast<std::size_t>(c % 64 / 16)] >= mask.threshold;
          const auto i = static_cast<std::size_t>(r * stride + c);
          CHECK(to[i] == (c >= columns ? from[i] : stays ? from[i] * mask.scale : 0.0F));
        }
      }
    }
  }
}

TEST_CASE("rows of another matrix have its mask", "[kernels]") {
  const DropMask whole{0x0123'4567'89AB'CDEFU, 3, 0x6000'0000U, 1.6F, 0};
  const std::vector<std::int64_t> rows = {4, 0, 0x1'0000'0002, 7};
  DropMask some = whole;
  some.rows = rows.data();
  constexpr std::int64_t kColumns = 70;
  const std::vector<float> ones(kColumns, 1.0F);
  for (const TransformerLevel* level : levels()) {
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(rows.size()); ++r) {
      std::vector<float> found(kColumns), expected(kColumns);
      level->of_float.drop(ones.data(), found.data(), some.from_row(r), 1, kColumns, kColumns);
      level->of_float.drop(ones.data(), expected.data(), whole.from_row(rows[static_cast<std::size_t>(r)]), 1, kColumns,
                           kColumns);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("bfloat16 is rounded to nearest even, and keeps NaN", "[kernels]") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> from = {
      1.0F,  1.00390625F, 1.01171875F, -3.14159274F, 0.0F, inf, -inf, 3.4e38F, std::numeric_limits<float>::quiet_NaN(),
      1e-40F};
  const std::vector<float> expected = {1.0F, 1.0F, 1.015625F, -3.140625F, 0.0F, inf, -inf, inf, 0.0F, 0.0F};
  for (const TransformerLevel* level : levels()) {
    std::vector<Bf16> low(from.size());
    std::vector<float> back(from.size());
    level->of_bf16.lower(from.data(), low.data(), static_cast<std::int64_t>(from.size()));
    level->of_bf16.raise(low.data(), back.data(), static_cast<std::int64_t>(from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (std::isnan(from[i])) {
        CHECK(std::isnan(value_of(low[i])));
      } else {
        CHECK(back[i] == Approx(expected[i]).margin(1e-39));
        CHECK(value_of(low[i]) == back[i]);
      }
    }
  }
}
