#include "runner/train/experiment/bf16_master_weights.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <bit>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

constexpr std::int64_t kDraws = 8;            // 16 bits each, from one block of 128
constexpr std::int64_t kGrainBlocks = 2'048;  // grain size of a thread: about 50 microseconds

// Philox 4x32-10.
constexpr int kRounds = 10;
constexpr std::array<std::uint32_t, 2> kFactors = {0xD251'1F53U, 0xCD9E'8D57U}, kSteps = {0x9E37'79B9U, 0xBB67'AE85U};

/// A tensor of this shape without its memory: one element, expanded.
at::Tensor hollow(const at::Tensor& like) {
  return at::empty({1}, like.options().dtype(at::kFloat).requires_grad(false)).expand(like.sizes());
}

[[gnu::always_inline]] inline std::uint16_t rounded(float value, std::uint32_t draw) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kExponent = 0x7F80'0000U;
  if ((bits & kExponent) == kExponent) return c10::BFloat16(value).x;
  return static_cast<std::uint16_t>((bits + draw) >> 16U);
}

constexpr std::int64_t kWord = 0xFFFF'FFFF;

at::Tensor low_word(const at::Tensor& x) { return x.bitwise_and(kWord); }
at::Tensor high_word(const at::Tensor& x) { return x.bitwise_right_shift(32).bitwise_and(kWord); }

/// philox() of the counters {0, 1, ..., blocks - 1} and the rest of one counter, by plain operations: [blocks, 4].
at::Tensor philox_words(std::int64_t blocks, std::array<std::uint32_t, 3> rest, std::array<std::uint32_t, 2> key,
                        const c10::Device& device) {
  at::Tensor a = at::arange(blocks, at::TensorOptions(at::kLong).device(device));
  at::Tensor b = at::full_like(a, std::int64_t{rest[0]}), c = at::full_like(a, std::int64_t{rest[1]});
  at::Tensor d = at::full_like(a, std::int64_t{rest[2]});
  for (int round = 0; round < kRounds; ++round) {
    const at::Tensor of_a = a * std::int64_t{kFactors[0]}, of_c = c * std::int64_t{kFactors[1]};
    a = high_word(of_c).bitwise_xor(b).bitwise_xor(std::int64_t{key[0]});
    c = high_word(of_a).bitwise_xor(d).bitwise_xor(std::int64_t{key[1]});
    b = low_word(of_c);
    d = low_word(of_a);
    key[0] += kSteps[0];
    key[1] += kSteps[1];
  }
  return at::stack({a, b, c, d}, 1);
}

/// What round_stochastically() does, with the same bits, on any device.
void round_by_operations(const at::Tensor& source, const at::Tensor& target, std::array<std::uint32_t, 3> rest,
                         std::array<std::uint32_t, 2> key) {
  constexpr std::int64_t kExponent = 0x7F80'0000, kHalf = 0xFFFF;
  const std::int64_t size = source.numel(), blocks = (size + kDraws - 1) / kDraws;
  const at::Tensor words = philox_words(blocks, rest, key, source.device());
  const at::Tensor halves = at::stack({words.bitwise_and(kHalf), words.bitwise_right_shift(16)}, 2);
  const at::Tensor draws = halves.flatten().narrow(0, 0, size);
  const at::Tensor flat = source.flatten(), bits = low_word(flat.view(at::kInt).to(at::kLong));
  const at::Tensor up = (bits + draws).bitwise_right_shift(16).bitwise_and(kHalf).to(at::kShort).view(at::kBFloat16);
  const at::Tensor not_finite = bits.bitwise_and(kExponent).eq(kExponent);
  target.copy_(at::where(not_finite, flat.to(at::kBFloat16), up).view(target.sizes()));
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = std::uint64_t{kFactors[0]} * counter[0], b = std::uint64_t{kFactors[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += kSteps[0];
    key[1] += kSteps[1];
  }
  return counter;
}

void round_stochastically(const at::Tensor& source, const at::Tensor& target, std::uint64_t seed, std::uint64_t stream,
                          std::uint32_t part) {
  RUNNER_ASSERT(source.is_contiguous() && target.is_contiguous() && source.numel() == target.numel(),
                "element i goes to element i");
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const std::array<std::uint32_t, 2> key = {low(seed), low(seed >> 32U)};
  const std::array<std::uint32_t, 3> rest = {part, low(stream), low(stream >> 32U)};
  if (!source.is_cpu()) return round_by_operations(source, target, rest, key);
  const float* from = source.const_data_ptr<float>();
  auto* to = reinterpret_cast<std::uint16_t*>(target.mutable_data_ptr<at::BFloat16>());
  const std::int64_t size = source.numel(), blocks = (size + kDraws - 1) / kDraws;
  at::parallel_for(0, blocks, kGrainBlocks, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const auto words = philox({low(static_cast<std::uint64_t>(block)), rest[0], rest[1], rest[2]}, key);
      const std::int64_t first = block * kDraws, last = std::min(first + kDraws, size);
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t draw = i - first;
        const std::uint32_t word = words[static_cast<std::size_t>(draw / 2)];
        to[i] = rounded(from[i], draw % 2 == 0 ? word & 0xFFFFU : word >> 16U);
      }
    }
  });
}

struct Bf16MasterWeights::Twins {
  struct Pair {
    at::Tensor weight, twin;
  };
  components::NamedTensors all;  // what the optimizer gets
  std::vector<Pair> pairs;       // of them, those with a twin
};

Bf16MasterWeights::Bf16MasterWeights(const components::NamedTensors& parameters, const Options& options)
    : options_(options), twins_(std::make_unique<Twins>()) {
  for (const auto& parameter : parameters) {
    if (parameter.tensor.scalar_type() != at::kBFloat16) {
      twins_->all.push_back(parameter);
      continue;
    }
    const at::Tensor twin = hollow(parameter.tensor);
    twins_->all.push_back({parameter.name, twin});
    twins_->pairs.push_back({parameter.tensor, twin});
  }
}

Bf16MasterWeights::~Bf16MasterWeights() = default;

components::NamedTensors Bf16MasterWeights::for_optimizer() const { return twins_->all; }

void Bf16MasterWeights::widen() {
  const at::NoGradGuard no_grad;
  for (const auto& [weight, twin] : twins_->pairs) {
    twin.set_data(weight.to(at::kFloat));
    if (weight.grad().defined()) twin.mutable_grad() = weight.grad().to(at::kFloat);
  }
}

void Bf16MasterWeights::narrow() {
  const at::NoGradGuard no_grad;
  std::uint32_t part = 0;
  for (const auto& [weight, twin] : twins_->pairs) {
    if (!options_.stochastic) {
      weight.copy_(twin);
    } else if (twin.grad().defined()) {
      round_stochastically(twin, weight, options_.seed, static_cast<std::uint64_t>(steps_), part);
      weight.unsafeGetTensorImpl()->bump_version();  // as an in-place operation would: cached copies are stale now
    }
    ++part;
    twin.mutable_grad().reset();
    twin.set_data(hollow(weight));
  }
  ++steps_;
}

void Bf16MasterWeights::narrow_to_nearest() {
  const at::NoGradGuard no_grad;
  for (const auto& [weight, twin] : twins_->pairs) {
    weight.copy_(twin);
    twin.mutable_grad().reset();
    twin.set_data(hollow(weight));
  }
}

void Bf16MasterWeights::save_state(core::StateWriter& writer) const {
  if (!twins_->pairs.empty()) writer.value("steps", core::Node::integer(steps_));
}

void Bf16MasterWeights::load_state(const core::StateReader& reader) { steps_ = reader.value("steps").as_integer(); }

}  // namespace runner::train
