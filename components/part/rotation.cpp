#include "components/part/rotation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <c10/core/DeviceType.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "components/tensor/tensors.h"

namespace components::part {
namespace {

using Scaling = RotaryOptions::Scaling;

constexpr double kTurn = 6.283185307179586;

at::TensorOptions floats_on(c10::DeviceType device) { return at::TensorOptions().dtype(at::kFloat).device(device); }

/// Angle of each pair of features from one position to the next, [D / 2]; one step at a time in float32, as torch does
/// it.
at::Tensor plain_frequencies(double base, std::int64_t head) {
  const at::Tensor exponents = at::arange(0, head, 2, floats_on(at::kCPU)) / static_cast<double>(head);
  return at::pow(base, exponents).reciprocal();
}

/// Llama 3.1's: long wavelengths are stretched, short ones are not, those between are interpolated.
double llama3(double frequency, const RotaryOptions& o) {
  const auto original = static_cast<double>(o.original_positions);
  const double wavelength = kTurn / frequency;
  if (wavelength < original / o.high_freq_factor) return frequency;
  if (wavelength > original / o.low_freq_factor) return frequency / o.factor;
  const double smooth = (original / wavelength - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor);
  return (1 - smooth) * frequency / o.factor + smooth * frequency;
}

/// YaRN (Peng et al. 2023): the pair of features that turns `rotations` times within the original positions.
double pair_with(double rotations, const RotaryOptions& o) {
  const auto head = static_cast<double>(o.head), original = static_cast<double>(o.original_positions);
  return head * std::log(original / (rotations * kTurn)) / (2 * std::log(o.base));
}

void scale_yarn(float* frequencies, const RotaryOptions& o) {
  double low = pair_with(o.beta_fast, o), high = pair_with(o.beta_slow, o);
  if (o.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(o.head - 1));
  if (low == high) high += 0.001;
  for (std::int64_t i = 0; i < o.head / 2; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const auto frequency = static_cast<double>(frequencies[i]);
    frequencies[i] = static_cast<float>(frequency / o.factor * ramp + frequency * (1 - ramp));
  }
}

double growth(double scale, double mscale) { return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0; }

/// What cos and sin are multiplied with.
double amplitude(const RotaryOptions& o) {
  if (o.scaling != Scaling::kYarn && o.scaling != Scaling::kLong) return 1.0;
  if (o.attention_factor) return *o.attention_factor;
  if (o.scaling == Scaling::kLong) {
    if (o.factor <= 1.0) return 1.0;
    return std::sqrt(1 + std::log(o.factor) / std::log(static_cast<double>(o.original_positions)));
  }
  if (o.mscale != 0 && o.mscale_all_dim != 0) return growth(o.factor, o.mscale) / growth(o.factor, o.mscale_all_dim);
  return growth(o.factor, 1.0);
}

/// For a sequence of `positions`, of which only `dynamic` and `longrope` make use.
at::Tensor frequencies_for(const RotaryOptions& o, std::int64_t positions) {
  double base = o.base;
  if (o.scaling == Scaling::kDynamic && positions > o.original_positions) {
    const double longer = static_cast<double>(positions) / static_cast<double>(o.original_positions);
    const auto head = static_cast<double>(o.head);
    base *= std::pow(o.factor * longer - (o.factor - 1), head / (head - 2));
  }
  at::Tensor frequencies = plain_frequencies(base, o.head);
  auto* const each = frequencies.mutable_data_ptr<float>();
  if (o.scaling == Scaling::kLinear) {
    for (std::int64_t i = 0; i < o.head / 2; ++i) each[i] = static_cast<float>(each[i] / o.factor);
  } else if (o.scaling == Scaling::kLlama3) {
    for (std::int64_t i = 0; i < o.head / 2; ++i) each[i] = static_cast<float>(llama3(each[i], o));
  } else if (o.scaling == Scaling::kYarn) {
    scale_yarn(each, o);
  } else if (o.scaling == Scaling::kLong) {
    const std::vector<double>& factors = positions > o.original_positions ? o.long_factors : o.short_factors;
    const at::Tensor exponents = at::arange(0, o.head, 2, floats_on(at::kCPU)) / static_cast<double>(o.head);
    return (at::tensor(factors, floats_on(at::kCPU)) * at::pow(o.base, exponents)).reciprocal();
  }
  return frequencies;
}

std::pair<at::Tensor, at::Tensor> tables(const RotaryOptions& o, std::int64_t of_sequence, std::int64_t positions) {
  const at::Tensor angles_TD = at::outer(at::arange(positions, floats_on(at::kCPU)), frequencies_for(o, of_sequence));
  at::Tensor cos_T1D = at::cos(angles_TD).unsqueeze(1), sin_T1D = at::sin(angles_TD).unsqueeze(1);
  if (const double by = amplitude(o); by != 1.0) {
    cos_T1D.mul_(by);
    sin_T1D.mul_(by);
  }
  return {cos_T1D, sin_T1D};
}

}  // namespace

Rotation::Rotation(const RotaryOptions& options, std::int64_t positions, bool meta) : options_(options) {
  if (meta) {
    cos_ = std::make_unique<at::Tensor>(at::empty({positions, 1, options.head / 2}, floats_on(at::kMeta)));
    sin_ = std::make_unique<at::Tensor>(at::empty({positions, 1, options.head / 2}, floats_on(at::kMeta)));
    return;
  }
  auto [cos, sin] = tables(options, 0, positions);
  cos_ = std::make_unique<at::Tensor>(std::move(cos));
  sin_ = std::make_unique<at::Tensor>(std::move(sin));
}

Rotation::~Rotation() = default;

std::int64_t Rotation::features() const { return options_.head; }

bool Rotation::depends_on_length(std::int64_t positions) const {
  return (options_.scaling == Scaling::kDynamic || options_.scaling == Scaling::kLong) &&
         positions > options_.original_positions;
}

bool Rotation::stretches(std::int64_t positions) const {
  return positions > cos_->size(0) || (depends_on_length(positions) && !cos_->is_meta());
}

void Rotation::stretch(std::int64_t positions) const {
  if (stretched_ == positions && stretched_cos_->device() == cos_->device()) return;
  if (cos_->is_meta()) {
    stretched_cos_ = std::make_unique<at::Tensor>(at::empty({positions, 1, options_.head / 2}, cos_->options()));
    stretched_sin_ = std::make_unique<at::Tensor>(at::empty_like(*stretched_cos_));
    stretched_ = positions;
    return;
  }
  auto [cos, sin] = tables(options_, positions, positions);
  stretched_cos_ = std::make_unique<at::Tensor>(cos.to(cos_->device()));
  stretched_sin_ = std::make_unique<at::Tensor>(sin.to(sin_->device()));
  stretched_ = positions;
}

at::Tensor Rotation::cos(std::int64_t positions) const {
  if (!stretches(positions)) return cos_->narrow(0, 0, positions);
  stretch(positions);
  return *stretched_cos_;
}

at::Tensor Rotation::sin(std::int64_t positions) const {
  if (!stretches(positions)) return sin_->narrow(0, 0, positions);
  stretch(positions);
  return *stretched_sin_;
}

namespace {

at::Tensor turned(const at::Tensor& x_BTHD, const at::Tensor& cos, const at::Tensor& sin) {
  const std::int64_t half = cos.size(-1), rest = x_BTHD.size(-1) - 2 * half;
  const at::Tensor a = x_BTHD.narrow(-1, 0, half), b = x_BTHD.narrow(-1, half, half);
  if (rest == 0) return at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
  const at::Tensor turned_a = a * cos - b * sin;
  return at::cat({turned_a, b * cos + a * sin, x_BTHD.narrow(-1, 2 * half, rest).to(turned_a.scalar_type())}, -1);
}

}  // namespace

at::Tensor rotate(const at::Tensor& x_BTHD, const Rotation& rotation, const at::Tensor& positions_BT) {
  // The blocks of a model share the tables, and may be on several devices.
  at::Tensor cos = rotation.cos(x_BTHD.size(1)).to(x_BTHD.device());  // [T, 1, D / 2]
  at::Tensor sin = rotation.sin(x_BTHD.size(1)).to(x_BTHD.device());
  if (positions_BT.defined()) {
    cos = at::embedding(cos.squeeze(1), positions_BT).unsqueeze(2);  // [B, T, 1, D / 2]
    sin = at::embedding(sin.squeeze(1), positions_BT).unsqueeze(2);
  }
  return turned(x_BTHD, cos, sin);
}

at::Tensor rotate(const at::Tensor& x_BTHD, const Rotation& rotation, std::int64_t first) {
  const std::int64_t positions = x_BTHD.size(1);
  return turned(x_BTHD, rotation.cos(first + positions).narrow(0, first, positions).to(x_BTHD.device()),
                rotation.sin(first + positions).narrow(0, first, positions).to(x_BTHD.device()));
}

}  // namespace components::part
