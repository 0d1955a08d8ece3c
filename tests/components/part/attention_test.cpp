// Attention by plain operations against its definition, number by number in double precision.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <vector>

#include "components/ops/dropout.h"
#include "components/part/attention.h"
#include "components/tensor/tensors.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using components::Dropout;
using components::part::AttentionOptions;

constexpr std::int64_t kBatch = 2, kHead = 6;

struct Case {
  const char* name;
  std::int64_t heads, kv_heads, positions, seen;
  bool causal;
  std::int64_t window;
  bool alibi, masked;
};

constexpr Case kCases[] = {{"every head its own", 3, 3, 7, 7, true, 0, false, false},
                           {"grouped heads", 6, 2, 7, 7, true, 0, false, false},
                           {"one head of keys", 4, 1, 7, 7, true, 0, false, false},
                           {"both directions", 2, 2, 7, 7, false, 0, false, false},
                           {"both directions, padded", 2, 2, 7, 7, false, 0, false, true},
                           {"causal, padded on both sides", 2, 1, 7, 7, true, 0, false, true},
                           {"a window", 2, 2, 9, 9, true, 3, false, false},
                           {"a window, padded", 2, 2, 9, 9, true, 3, false, true},
                           {"cross attention", 2, 2, 4, 9, false, 0, false, false},
                           {"cross attention, padded", 4, 2, 4, 9, false, 0, false, true},
                           {"the last positions of a longer text", 2, 2, 3, 9, true, 0, false, false},
                           {"ALiBi", 4, 4, 7, 7, true, 0, true, false},
                           {"ALiBi of six heads, padded", 6, 6, 7, 7, true, 0, true, true},
                           {"ALiBi in both directions", 2, 2, 7, 7, false, 0, true, false}};

/// The first sample's mask has a hole and ends early, the second's begins late: its first rows see nothing.
bool is_real(std::int64_t sample, std::int64_t position, std::int64_t seen) {
  return sample == 0 ? position != 2 && position < seen - 2 : position > 1;
}

/// Press et al. 2021: 2^(-8 i / n); between them, for other counts of heads, every other one of the next power of two.
double slope(std::int64_t head, std::int64_t heads) {
  if (heads == 6) {
    constexpr double kOfSix[] = {-2, -4, -6, -8, -1, -3};
    return std::exp2(kOfSix[head]);
  }
  return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
}

}  // namespace

TEST_CASE("attention follows its definition", "[part]") {
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  for (const Case& c : kCases) {
    DYNAMIC_SECTION(c.name) {
      const at::Tensor q = torch::randn({kBatch, c.positions, c.heads, kHead}),
                       k = torch::randn({kBatch, c.seen, c.kv_heads, kHead}),
                       v = torch::randn({kBatch, c.seen, c.kv_heads, kHead});
      at::Tensor mask;
      if (c.masked) {
        mask = at::ones({kBatch, c.seen}, at::kBool);
        for (std::int64_t b = 0; b < kBatch; ++b) {
          for (std::int64_t j = 0; j < c.seen; ++j) mask[b][j].fill_(is_real(b, j, c.seen));
        }
      }
      const AttentionOptions options{.heads = c.heads,
                                     .kv_heads = c.kv_heads,
                                     .head = kHead,
                                     .scale = 0.3,
                                     .causal = c.causal,
                                     .window = c.window,
                                     .alibi = c.alibi};
      // A fraction that drops nothing takes the way of those that do.
      for (const bool with_dropout : {false, true}) {
        const std::optional<Dropout> dropout = with_dropout ? std::make_optional<Dropout>(0.0, q) : std::nullopt;
        const at::Tensor mixed = components::part::attend(q, k, v, options, {mask, dropout, 0.0, 0});
        const std::vector<double> found = tests::to_numbers(mixed), of_q = tests::to_numbers(q),
                                  of_k = tests::to_numbers(k), of_v = tests::to_numbers(v);
        const auto at = [](std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t positions, std::int64_t heads) {
          return static_cast<std::size_t>(((b * positions + t) * heads + h) * kHead);
        };
        for (std::int64_t b = 0; b < kBatch; ++b) {
          for (std::int64_t t = 0; t < c.positions; ++t) {
            const std::int64_t place = t + (c.causal || c.alibi ? c.seen - c.positions : 0);
            for (std::int64_t h = 0; h < c.heads; ++h) {
              const std::int64_t group = h / (c.heads / c.kv_heads);
              std::vector<double> weights;
              double total = 0;
              const auto sees = [&](std::int64_t j) {
                return !(c.causal && j > place) && !(c.window > 0 && place - j >= c.window) &&
                       (!c.masked || is_real(b, j, c.seen));
              };
              bool any = false;
              for (std::int64_t j = 0; j < c.seen; ++j) any = any || sees(j);
              for (std::int64_t j = 0; j < c.seen; ++j) {
                double score = 0;
                for (std::size_t d = 0; d < kHead; ++d) {
                  score +=
                      0.3 * of_q[at(b, t, h, c.positions, c.heads) + d] * of_k[at(b, j, group, c.seen, c.kv_heads) + d];
                }
                if (c.alibi) score -= slope(h, c.heads) * std::abs(static_cast<double>(place - j));
                weights.push_back(sees(j) || (!any && j == place) ? std::exp(score) : 0.0);
                total += weights.back();
              }
              for (std::size_t d = 0; d < kHead; ++d) {
                double expected = 0;
                for (std::int64_t j = 0; j < c.seen; ++j) {
                  expected +=
                      weights[static_cast<std::size_t>(j)] / total * of_v[at(b, j, group, c.seen, c.kv_heads) + d];
                }
                CAPTURE(with_dropout, b, t, h, d);
                CHECK(found[at(b, t, h, c.positions, c.heads) + d] == Approx(expected).margin(1e-5));
              }
            }
          }
        }
      }
    }
  }
}
