#include "components/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "components/kernels/simd.h"

namespace components::kernels {
namespace {

[[gnu::always_inline]] inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// torch.lerp: from `a` the share `weight` of the way to `b`.
[[gnu::always_inline]] inline float lerp(float a, float b, float weight) { return fma(weight, b - a, a); }

[[gnu::always_inline]] inline float gradient_of(const Common& common, float gradient, float parameter) {
  return fma(parameter, common.weight_decay, common.sign * gradient);
}

[[gnu::always_inline]] inline float sign_of(float value) { return value > 0.0F ? 1.0F : value < 0.0F ? -1.0F : 0.0F; }

[[gnu::always_inline]] inline float lamb_direction(const LambStep& step, float mean, float square, float parameter) {
  return mean / step.mean_scale / (std::sqrt(square / step.square_scale) + step.eps) + step.decay * parameter;
}

}  // namespace

ROUX_SIMD void adagrad(const Slice& slice, const AdagradStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict sum = slice.state[0];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float s = sum[i] + g * g;
    sum[i] = s;
    w[i] -= step.rate * (g / (std::sqrt(s) + step.eps));
  }
}

namespace {

template <bool kMomentum, bool kCentered>
[[gnu::always_inline]] inline void rmsprop_loop(const Slice& slice, const RmspropStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict square = slice.state[0];
  float* __restrict buffer = slice.state[1];
  float* __restrict mean = slice.state[2];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float v = step.alpha.keep * square[i] + step.alpha.add * g * g;
    square[i] = v;
    float variance = v;
    if constexpr (kCentered) {
      const float m = lerp(mean[i], g, step.alpha.add);
      mean[i] = m;
      variance -= m * m;
    }
    float move = g / (std::sqrt(variance) + step.eps);
    if constexpr (kMomentum) {
      move = step.momentum * buffer[i] + move;
      buffer[i] = move;
    }
    w[i] = fma(move, -step.lr, w[i]);
  }
}

}  // namespace

ROUX_SIMD void rmsprop(const Slice& slice, const RmspropStep& step) {
  if (step.momentum > 0.0F && step.centered) return rmsprop_loop<true, true>(slice, step);
  if (step.momentum > 0.0F) return rmsprop_loop<true, false>(slice, step);
  if (step.centered) return rmsprop_loop<false, true>(slice, step);
  rmsprop_loop<false, false>(slice, step);
}

ROUX_SIMD void adadelta(const Slice& slice, const AdadeltaStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict square = slice.state[0];
  float* __restrict moved = slice.state[1];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float v = step.rho.keep * square[i] + step.rho.add * g * g;
    square[i] = v;
    const float delta = std::sqrt(moved[i] + step.eps) / std::sqrt(v + step.eps) * g;
    moved[i] = step.rho.keep * moved[i] + step.rho.add * delta * delta;
    w[i] = fma(delta, -step.lr, w[i]);
  }
}

ROUX_SIMD void adamax(const Slice& slice, const AdamaxStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict mean = slice.state[0];
  float* __restrict largest = slice.state[1];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float m = lerp(mean[i], g, step.beta1.add);
    mean[i] = m;
    const float decayed = step.beta2.keep * largest[i], now = std::fabs(g) + step.eps;
    // Written so that a NaN of the gradient stays one.
    const float u = now <= decayed ? decayed : now;
    largest[i] = u;
    w[i] -= step.rate * (m / u);
  }
}

ROUX_SIMD void moments(const Slice& slice, const MomentStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict mean = slice.state[0];
  float* __restrict square = slice.state[1];
  const float plain = step.adaptive ? 0.0F : 1.0F;
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float m = lerp(mean[i], g, step.beta1.add);
    const float v = step.beta2.keep * square[i] + step.beta2.add * g * g;
    mean[i] = m;
    square[i] = v;
    const float adaptive = std::sqrt(v * step.square_scale) + step.eps;
    const float denominator = plain != 0.0F ? 1.0F : adaptive;
    w[i] = step.common.shrink * w[i] - step.gradient_rate * (g / denominator) - step.mean_rate * (m / denominator);
  }
}

ROUX_SIMD void rprop(const Slice& slice, const RpropStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict before = slice.state[0];
  float* __restrict size = slice.state[1];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float agreement = g * before[i];
    const float factor = agreement > 0.0F ? step.eta_plus : agreement < 0.0F ? step.eta_minus : 1.0F;
    const float s = std::min(std::max(size[i] * factor, step.step_min), step.step_max);
    // Where the sign turned, this step is sat out.
    const float kept = agreement < 0.0F ? 0.0F : g;
    size[i] = s;
    before[i] = kept;
    w[i] -= sign_of(kept) * s;
  }
}

ROUX_SIMD void asgd(const Slice& slice, const AsgdStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict average = slice.state[0];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float moved = fma(g, -step.eta, w[i] * step.common.shrink);
    w[i] = moved;
    average[i] = step.mu == 1.0F ? moved : average[i] + (moved - average[i]) * step.mu;
  }
}

ROUX_SIMD void lion(const Slice& slice, const LionStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict mean = slice.state[0];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float m = mean[i];
    w[i] = step.common.shrink * w[i] - step.lr * sign_of(step.beta1.keep * m + step.beta1.add * g);
    mean[i] = step.beta2.keep * m + step.beta2.add * g;
  }
}

namespace {

template <bool kAdaptive>
[[gnu::always_inline]] inline void schedule_free_loop(const Slice& slice, const ScheduleFreeStep& step) {
  float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict z = slice.state[0];
  float* __restrict square = slice.state[1];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float y = w[i];
    float direction = gradient[i];
    if constexpr (kAdaptive) {
      const float v = step.beta2.keep * square[i] + step.beta2.add * direction * direction;
      square[i] = v;
      direction = direction / (std::sqrt(v / step.square_scale) + step.eps);
    }
    direction = fma(y, step.decay, direction);
    w[i] = fma(direction, step.y_rate, lerp(y, z[i], step.towards_z));
    z[i] = fma(direction, -step.z_rate, z[i]);
  }
}

}  // namespace

ROUX_SIMD void schedule_free(const Slice& slice, const ScheduleFreeStep& step) {
  if (step.adaptive) return schedule_free_loop<true>(slice, step);
  schedule_free_loop<false>(slice, step);
}

ROUX_SIMD SquareSums lamb_moments(const Slice& slice, const LambStep& step) {
  const float* __restrict w = slice.parameter;
  const float* __restrict gradient = slice.gradient;
  float* __restrict mean = slice.state[0];
  float* __restrict square = slice.state[1];
  SquareSums sums;
  for (std::int64_t i = 0; i < slice.size; ++i) {
    const float g = gradient_of(step.common, gradient[i], w[i]);
    const float m = step.beta1.keep * mean[i] + step.beta1.add * g;
    const float v = step.beta2.keep * square[i] + step.beta2.add * g * g;
    mean[i] = m;
    square[i] = v;
    const float direction = lamb_direction(step, m, v, w[i]);
    sums.parameter += static_cast<double>(w[i]) * static_cast<double>(w[i]);
    sums.direction += static_cast<double>(direction) * static_cast<double>(direction);
  }
  return sums;
}

ROUX_SIMD void lamb_apply(const Slice& slice, const LambStep& step, float rate) {
  float* __restrict w = slice.parameter;
  const float* __restrict mean = slice.state[0];
  const float* __restrict square = slice.state[1];
  for (std::int64_t i = 0; i < slice.size; ++i) {
    w[i] -= rate * lamb_direction(step, mean[i], square[i], w[i]);
  }
}

}  // namespace components::kernels
