// The kernels of a transformer on float32 and bfloat16 rows, at each level that the processor can run, against formulas
// in double precision. A bound counts the roundings of float32, and one of bfloat16 where that is what is stored.

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/components/kernels/levels.h"

namespace {

using components::kernels::AttentionRows;
using components::kernels::TransformerKernels;
using tests::kernels::Bf16;
using tests::kernels::draw;
using tests::kernels::DropMask;
using tests::kernels::entry;
using tests::kernels::factor_of;
using tests::kernels::index;
using tests::kernels::is_near;
using tests::kernels::kFloatUnit;
using tests::kernels::value_of;

constexpr DropMask kMask{0x0123'4567'89AB'CDEFU, 3, 0x6000'0000U, 1.6F, 0x1'0000'0002};
constexpr std::int64_t kRows = 3;

/// Runs `check(kernels)` for each level.
template <typename T, typename Check>
void at_each_level(const Check& check) {
  int number = 0;
  for (const auto* level : tests::kernels::transformer_levels()) {
    INFO("level " << number++);
    check(tests::kernels::of_type<T>(*level));
  }
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

}  // namespace

TEMPLATE_TEST_CASE("a layer norm has mean 0 and variance 1 before its weights", "[kernels]", float, Bf16) {
  at_each_level<TestType>([](const TransformerKernels<TestType>& kernels) {
    for (const std::int64_t width : {2, 15, 16, 37, 80}) {
      for (const bool with_branch : {false, true}) {
        const DropMask mask = with_branch && width > 15 ? kMask : DropMask{};
        const auto x = draw<float>(kRows * width, 1), weight = draw<float>(width, 2), bias = draw<float>(width, 3);
        const auto branch = draw<TestType>(kRows * width, 4);
        const auto branch_bias = draw<float>(width, 5);
        std::vector<float> sum(x.size()), mean(kRows), rstd(kRows);
        std::vector<TestType> normed(x.size());
        std::vector<float> whole(x.size());
        kernels.layer_norm({x.data(), with_branch ? branch.data() : nullptr, with_branch ? branch_bias.data() : nullptr,
                            with_branch ? sum.data() : nullptr, weight.data(), bias.data(), 1e-5, normed.data(),
                            mean.data(), rstd.data(), kRows, width, mask, true, whole.data()});
        for (std::int64_t row = 0; row < kRows; ++row) {
          CAPTURE(width, with_branch, row);
          std::vector<double> exact, sizes;
          double total = 0, largest = 0, squares = 0;
          for (std::int64_t c = 0; c < width; ++c) {
            const double added = factor_of(mask, row, c) * (entry(branch, row * width + c) + entry(branch_bias, c));
            exact.push_back(entry(x, row * width + c) + (with_branch ? added : 0));
            sizes.push_back(std::abs(entry(x, row * width + c)) + std::abs(added));
            if (with_branch) {
              CHECK(is_near(sum[index(row * width + c)], exact.back(),
                            sizes.back() + factor_of(mask, row, c) * std::abs(entry(branch_bias, c)), 3));
            }
            total += exact.back();
            largest = std::max(largest, sizes.back());
          }
          const auto of_row = static_cast<double>(width);
          for (const double value : exact) squares += (value - total / of_row) * (value - total / of_row);
          const double spread = std::sqrt(squares / of_row + 1e-5);
          // Each of the sums is of `width` terms, and of the rest of a pack of 16 that is taken off again.
          const double roundings = of_row + 24;
          CHECK(is_near(mean[index(row)], total / of_row, largest, roundings));
          CHECK(is_near(rstd[index(row)], 1 / spread, 16 * largest * largest / (spread * spread * spread), roundings));
          for (std::int64_t c = 0; c < width; ++c) {
            const double y = (exact[index(c)] - total / of_row) / spread;
            const double moved = 16 * largest * largest / (spread * spread) * (1 + std::abs(y));
            CHECK(is_near(normed[index(row * width + c)], y * entry(weight, c) + entry(bias, c),
                          std::abs(entry(weight, c)) * (largest / spread + moved) + std::abs(entry(bias, c)),
                          roundings));
            CHECK(is_near(whole[index(row * width + c)], y * entry(weight, c) + entry(bias, c),
                          std::abs(entry(weight, c)) * (largest / spread + moved) + std::abs(entry(bias, c)),
                          roundings));
          }
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("a layer norm's gradient is that of the formula", "[kernels]", float, Bf16) {
  at_each_level<TestType>([](const TransformerKernels<TestType>& kernels) {
    for (const std::int64_t width : {2, 15, 16, 37, 80}) {
      // With all: gradients of the norm's output in both types; a third time in float32 alone.
      for (const int kind : {0, 1, 2}) {
        const bool with_all = kind > 0;
        const DropMask mask = with_all ? kMask : DropMask{};
        const auto x = draw<float>(kRows * width, 1), weight = draw<float>(width, 2);
        const auto dwhole = draw<float>(kRows * width, 12);
        const auto dstream = draw<float>(kRows * width, 6);
        const auto dnormed = draw<TestType>(kRows * width, 7);
        const auto mean = draw<float>(kRows, 8, 0.1F);
        const std::vector<float> rstd = {0.75F, 1.25F, 2.0F};
        std::vector<float> dx(x.size()), dweight = draw<float>(width, 9), dbias = draw<float>(width, 10);
        std::vector<float> dsum = draw<float>(width, 11);
        const std::vector<float> weight_before = dweight, bias_before = dbias, sum_before = dsum;
        std::vector<TestType> low(x.size());
        kernels.layer_norm_backward({x.data(), mean.data(), rstd.data(), weight.data(),
                                     kind < 2 ? dnormed.data() : nullptr, with_all ? dstream.data() : nullptr,
                                     dx.data(), with_all ? low.data() : nullptr, dweight.data(),
                                     with_all ? dbias.data() : nullptr, with_all ? dsum.data() : nullptr, kRows, width,
                                     mask, true, with_all ? dwhole.data() : nullptr});
        const auto gradient = [&](std::int64_t i) {
          return (kind < 2 ? entry(dnormed, i) : 0) + (with_all ? entry(dwhole, i) : 0);
        };
        const auto of_row = static_cast<double>(width), roundings = of_row + 24;
        std::vector<double> weights(index(width)), biases(index(width)), sums(index(width)), sizes(index(width));
        for (std::int64_t row = 0; row < kRows; ++row) {
          double sum = 0, dot = 0, terms = 0;
          const auto norm = [&](std::int64_t c) {
            return (entry(x, row * width + c) - entry(mean, row)) * entry(rstd, row);
          };
          for (std::int64_t c = 0; c < width; ++c) {
            const double scaled = gradient(row * width + c) * entry(weight, c);
            sum += scaled / of_row;
            dot += scaled * norm(c) / of_row;
            terms += std::abs(scaled) * (1 + std::abs(norm(c))) / of_row;
          }
          for (std::int64_t c = 0; c < width; ++c) {
            CAPTURE(width, kind, row, c);
            const std::int64_t i = row * width + c;
            const double d = gradient(i), own = d * entry(weight, c), passed = with_all ? entry(dstream, i) : 0;
            const double exact = entry(rstd, row) * (own - norm(c) * dot - sum) + passed;
            const double size = entry(rstd, row) * (std::abs(own) + (1 + std::abs(norm(c))) * terms) + std::abs(passed);
            CHECK(is_near(dx[index(i)], exact, size, roundings));
            if (with_all) CHECK(is_near(low[index(i)], exact * factor_of(mask, row, c), size * 1.6, roundings));
            weights[index(c)] += d * norm(c);
            biases[index(c)] += d;
            sums[index(c)] += exact * factor_of(mask, row, c);
            sizes[index(c)] += std::abs(d) * (1 + std::abs(norm(c))) + 1.6 * size;
          }
        }
        for (std::int64_t c = 0; c < width; ++c) {
          CAPTURE(width, kind, c);
          const double size = sizes[index(c)];
          CHECK(is_near(dweight[index(c)], weights[index(c)] + entry(weight_before, c),
                        size + std::abs(entry(weight_before, c)), roundings));
          if (!with_all) continue;
          CHECK(is_near(dbias[index(c)], biases[index(c)] + entry(bias_before, c),
                        size + std::abs(entry(bias_before, c)), roundings));
          CHECK(is_near(dsum[index(c)], sums[index(c)] + entry(sum_before, c), size + std::abs(entry(sum_before, c)),
                        roundings));
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("a branch is added to the residual stream", "[kernels]", float, Bf16) {
  at_each_level<TestType>([](const TransformerKernels<TestType>& kernels) {
    for (const std::int64_t width : {1, 15, 16, 37, 80}) {
      for (const DropMask& mask : {DropMask{}, kMask}) {
        for (const bool with_bias : {false, true}) {
          const auto x = draw<float>(kRows * width, 1), bias = draw<float>(width, 2);
          const auto branch = draw<TestType>(kRows * width, 3);
          std::vector<float> out(x.size());
          kernels.add_branch(x.data(), branch.data(), with_bias ? bias.data() : nullptr, out.data(), kRows, width,
                             mask);
          for (std::int64_t i = 0; i < kRows * width; ++i) {
            CAPTURE(width, i);
            const double b = with_bias ? entry(bias, i % width) : 0, factor = factor_of(mask, i / width, i % width);
            CHECK(is_near(out[index(i)], entry(x, i) + factor * (entry(branch, i) + b),
                          std::abs(entry(x, i)) + factor * (std::abs(entry(branch, i)) + std::abs(b)), 3));
          }
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("heads are split, turned by their positions, and joined again", "[kernels]", float, Bf16) {
  at_each_level<TestType>([](const TransformerKernels<TestType>& kernels) {
    for (const std::int64_t width : {2, 6, 16, 34, 64}) {
      for (const bool rotary : {false, true}) {
        constexpr std::int64_t kPositions = 3, kHeads = 2;
        const std::int64_t half = width / 2, size = kPositions * kHeads * width;
        const auto qkv = draw<TestType>(3 * size, 1);
        const auto bias = draw<float>(3 * kHeads * width, 2);
        std::vector<float> cos, sin;
        for (std::int64_t i = 0; i < kPositions * half; ++i) {
          cos.push_back(static_cast<float>(std::cos(0.3 * static_cast<double>(i))));
          sin.push_back(static_cast<float>(std::sin(0.3 * static_cast<double>(i))));
        }
        const float* const c = rotary ? cos.data() : nullptr;
        const float* const s = rotary ? sin.data() : nullptr;
        std::vector<std::vector<TestType>> parts(3, std::vector<TestType>(index(size)));
        kernels.split_heads({qkv.data(), bias.data(), c, s, parts[0].data(), parts[1].data(), parts[2].data(),
                             kPositions, kHeads, kHeads, width});
        std::vector<TestType> joined(qkv.size());
        auto dbias = draw<float>(3 * kHeads * width, 3);
        const auto before = dbias;
        kernels.join_heads({parts[0].data(), parts[1].data(), parts[2].data(), c, s, joined.data(), dbias.data(),
                            kPositions, kHeads, kHeads, width});
        std::vector<double> sums(dbias.size()), sizes(dbias.size());
        for (std::int64_t t = 0; t < kPositions; ++t) {
          for (std::int64_t part = 0; part < 3; ++part) {
            for (std::int64_t i = 0; i < kHeads * width; ++i) {
              const std::int64_t h = i / width, d = i % width, column = part * kHeads * width + i;
              const std::int64_t of_qkv = t * 3 * kHeads * width + column, of_part = (h * kPositions + t) * width + d;
              CAPTURE(width, rotary, t, part, i);
              // The other half of the pair that is turned.
              const std::int64_t other = d < half ? half : -half;
              const bool turns = rotary && part < 2;
              const double sign = d < half ? -1 : 1;
              const std::int64_t angle = t * half + d % half;
              const double by = turns ? entry(cos, angle) : 1;
              const double across = turns ? sign * entry(sin, angle) : 0;
              const double own = entry(qkv, of_qkv) + entry(bias, column);
              const double pair = turns ? entry(qkv, of_qkv + other) + entry(bias, column + other) : 0;
              const double terms = std::abs(entry(qkv, of_qkv)) + std::abs(entry(bias, column)) + std::abs(pair) + 4;
              CHECK(is_near(parts[index(part)][index(of_part)], own * by + pair * across, terms, 4));
              const double back = entry(parts[index(part)], of_part);
              const double back_pair = turns ? entry(parts[index(part)], of_part + other) : 0;
              CHECK(is_near(joined[index(of_qkv)], back * by - back_pair * across, std::abs(back) + std::abs(back_pair),
                            4));
              // The sums are of what is stored.
              sums[index(column)] += entry(joined, of_qkv);
              sizes[index(column)] += std::abs(entry(joined, of_qkv));
            }
          }
        }
        for (std::int64_t i = 0; i < 3 * kHeads * width; ++i) {
          CHECK(is_near(dbias[index(i)], sums[index(i)] + entry(before, i),
                        sizes[index(i)] + std::abs(entry(before, i)), 4));
        }
      }
    }
  });
}

namespace {

/// Whether a row looks there, by its definition; `own`: the row's position.
bool looks_at(const AttentionRows& shape, std::int64_t own, std::int64_t column) {
  const std::int64_t behind = own - column;
  if (shape.causal) return behind >= 0 && (shape.window == 0 || behind < shape.window);
  return shape.window == 0 || std::abs(behind) <= shape.window;
}

std::vector<AttentionRows> attention_rows() {
  std::vector<AttentionRows> all;
  for (const std::int64_t columns : {3, 16, 21, 70}) {
    for (const std::int64_t first : {std::int64_t{0}, columns - kRows}) {
      for (const std::int64_t window : {0, 2, 30}) {
        for (const bool causal : {true, false}) all.push_back({first, kRows, columns, columns + 2, window, causal});
      }
    }
  }
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("a softmax and its gradient look where the row may look", "[kernels]", float, Bf16) {
  at_each_level<TestType>([](const TransformerKernels<TestType>& kernels) {
    for (const AttentionRows& shape : attention_rows()) {
      const std::int64_t columns = shape.columns;
      const float scale = 0.5F;
      const auto scores = draw<TestType>(kRows * shape.stride, 1, 4);
      auto probs = scores;
      kernels.softmax(probs.data(), scale, shape);
      const auto upstream = draw<TestType>(kRows * shape.stride, 2);
      auto gradient = upstream;
      kernels.softmax_backward(probs.data(), gradient.data(), scale, shape);
      for (std::int64_t row = 0; row < kRows; ++row) {
        const std::int64_t begin = row * shape.stride;
        const auto looks = [&](std::int64_t i) { return looks_at(shape, shape.first + row, i); };
        double of_exponentials = 0, most = -1e30, dot = 0, dots = 0;
        for (std::int64_t i = 0; i < columns; ++i) {
          if (looks(i)) most = std::max(most, 0.5 * entry(scores, begin + i));
        }
        for (std::int64_t i = 0; i < columns; ++i) {
          if (!looks(i)) continue;
          of_exponentials += std::exp(0.5 * entry(scores, begin + i) - most);
          dot += entry(probs, begin + i) * entry(upstream, begin + i);
          dots += std::abs(entry(probs, begin + i) * entry(upstream, begin + i));
        }
        for (std::int64_t i = 0; i < columns; ++i) {
          CAPTURE(columns, shape.first, shape.window, shape.causal, row, i);
          if (!looks(i)) {
            // Behind a window e^x of the least exponent is left.
            CHECK(std::abs(value_of(probs[index(begin + i)])) < 1e-37F);
            CHECK(std::abs(value_of(gradient[index(begin + i)])) < 1e-36F);
            continue;
          }
          // Both terms of the exponent are rounded before e^x, whose own error is 2 units in the last place.
          const double above = 0.5 * entry(scores, begin + i) - most, p = std::exp(above) / of_exponentials;
          const auto roundings = static_cast<double>(columns) + 8;
          CHECK(is_near(probs[index(begin + i)], p, p * (1 + std::abs(above) + std::abs(most)), roundings));
          const double kept = entry(probs, begin + i), d = entry(upstream, begin + i);
          CHECK(is_near(gradient[index(begin + i)], 0.5 * kept * (d - dot), 0.5 * kept * (std::abs(d) + dots),
                        roundings));
        }
        for (std::int64_t i = columns; i < shape.stride; ++i) {
          CHECK(entry(probs, begin + i) == entry(scores, begin + i));
          CHECK(entry(gradient, begin + i) == entry(upstream, begin + i));
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("rows are summed, and also stored in their own type", "[kernels]", float, Bf16) {
  at_each_level<TestType>([](const TransformerKernels<TestType>& kernels) {
    for (const std::int64_t width : {1, 15, 16, 37, 80}) {
      for (const DropMask& mask : {DropMask{}, kMask}) {
        const auto x = draw<float>(kRows * width, 1);
        auto sum = draw<float>(width, 2);
        const auto before = sum;
        std::vector<TestType> low(x.size());
        kernels.sum_rows(x.data(), sum.data(), width == 16 ? nullptr : low.data(), kRows, width, mask);
        for (std::int64_t c = 0; c < width; ++c) {
          CAPTURE(width, c);
          double exact = entry(before, c), size = std::abs(exact);
          for (std::int64_t row = 0; row < kRows; ++row) {
            const double term = factor_of(mask, row, c) * entry(x, row * width + c);
            if (width != 16) CHECK(is_near(low[index(row * width + c)], term, std::abs(term), 1));
            exact += term;
            size += std::abs(term);
          }
          CHECK(is_near(sum[index(c)], exact, size, kRows + 1));
        }
      }
    }
  });
}

TEST_CASE("GELU, dropout and cross entropy round bfloat16 rows once", "[kernels]") {
  at_each_level<Bf16>([](const TransformerKernels<Bf16>& kernels) {
    for (const std::int64_t width : {1, 15, 16, 37, 150}) {
      CAPTURE(width);
      const auto x = draw<Bf16>(kRows * width, 1, 2), d = draw<Bf16>(kRows * width, 2);
      const auto bias = draw<float>(width, 3);
      std::vector<Bf16> y(x.size()), dx(x.size()), dropped(x.size());
      std::vector<float> dbias(index(width));
      constexpr auto kGelu = components::kernels::Activation::kGeluTanh;
      kernels.activate({x.data(), bias.data(), y.data(), kRows, width, kGelu, false});
      kernels.activate_backward({x.data(), bias.data(), d.data(), dx.data(), dbias.data(), kRows, width, kGelu, false});
      kernels.drop(x.data(), dropped.data(), kMask, kRows, width, width);
      std::vector<double> sums(index(width)), sizes(index(width));
      for (std::int64_t i = 0; i < kRows * width; ++i) {
        CAPTURE(i);
        const double in = entry(x, i) + entry(bias, i % width), step = 1e-5;
        const double slope = (gelu(in + step) - gelu(in - step)) / (2 * step);
        // The exponent of e^x is some 16 units of |x|^3 off at these sizes; the difference quotient gives ten digits.
        const double size = 8 + std::abs(in * in * in);
        CHECK(is_near(y[index(i)], gelu(in), std::abs(in) * size, 16));
        CHECK(is_near(dx[index(i)], entry(d, i) * slope, std::abs(entry(d, i)) * size, 32));
        const double factor = factor_of(kMask, i / width, i % width);
        CHECK(is_near(dropped[index(i)], entry(x, i) * factor, std::abs(entry(x, i)) * factor, 1));
        sums[index(i % width)] += entry(d, i) * slope;
        sizes[index(i % width)] += std::abs(entry(d, i)) * size;
      }
      for (std::int64_t c = 0; c < width; ++c) {
        CHECK(is_near(dbias[index(c)], sums[index(c)], sizes[index(c)], 40));
      }
      const std::vector<std::int64_t> target = {0, -100, width - 1};
      auto gradient = x;
      const double loss = kernels.cross_entropy(gradient.data(), target.data(), -100, 0.25F, kRows, width);
      double exact_loss = 0;
      for (std::int64_t row = 0; row < kRows; ++row) {
        double sum = 0;
        const std::int64_t wanted = target[index(row)];
        for (std::int64_t c = 0; c < width; ++c) sum += std::exp(entry(x, row * width + c));
        if (wanted >= 0) exact_loss += std::log(sum) - entry(x, row * width + wanted);
        for (std::int64_t c = 0; c < width; ++c) {
          const double share = std::exp(entry(x, row * width + c)) / sum - (c == wanted ? 1 : 0);
          CHECK(is_near(gradient[index(row * width + c)], wanted < 0 ? 0.0 : 0.25 * share, 0.25 * 16,
                        static_cast<double>(width) + 8));
        }
      }
      CHECK(std::abs(loss - exact_loss) <= kFloatUnit * (static_cast<double>(width) + 24) * (8 + exact_loss));
    }
  });
}
