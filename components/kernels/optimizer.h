#pragma once

#include <array>
#include <cstdint>

namespace components::kernels {

/// Consecutive elements of one parameter with its gradient and state, all float32 and none overlapping. One call reads
/// and writes each of them once.
struct Slice {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  std::array<float*, 3> state = {};  ///< in the order of the function's comment
  std::int64_t size = 0;
};

/// What every rule does to the gradient first: `sign` -1 climbs, `weight_decay` is the L2 term; and what it does to the
/// parameter: multiply by `shrink` (decoupled decay; 1 without).
struct Common {
  float sign = 1.0F;
  float weight_decay = 0.0F;
  float shrink = 1.0F;
};

/// A running mean's two weights. Each is rounded from double by itself, as torch's scalars are: 1 - 0.999F is off by
/// 1e-5 of 0.001.
struct Decay {
  Decay() = default;
  explicit Decay(double decay) : keep(static_cast<float>(decay)), add(static_cast<float>(1.0 - decay)) {}
  float keep = 0, add = 1;
};

/// state: sum
struct AdagradStep {
  Common common;
  float rate, eps;
};
void adagrad(const Slice& slice, const AdagradStep& step);

/// state: square_avg; momentum_buffer when `momentum` > 0; grad_avg when `centered` (unused ones may be null)
struct RmspropStep {
  Common common;
  Decay alpha;
  float lr, eps, momentum;
  bool centered;
};
void rmsprop(const Slice& slice, const RmspropStep& step);

/// state: square_avg, acc_delta
struct AdadeltaStep {
  Common common;
  Decay rho;
  float lr, eps;
};
void adadelta(const Slice& slice, const AdadeltaStep& step);

/// state: exp_avg, exp_inf
struct AdamaxStep {
  Common common;
  Decay beta1, beta2;
  float rate, eps;  ///< rate: lr / (1 - beta1^t)
};
void adamax(const Slice& slice, const AdamaxStep& step);

/// NAdam and RAdam. state: exp_avg, exp_avg_sq. Moves by
/// `gradient_rate * g / denominator + mean_rate * exp_avg / denominator`, where the denominator is
/// `sqrt(exp_avg_sq * square_scale) + eps`, or 1 when `adaptive` is false.
struct MomentStep {
  Common common;
  Decay beta1, beta2;
  float eps, square_scale, gradient_rate, mean_rate;
  bool adaptive;
};
void moments(const Slice& slice, const MomentStep& step);

/// state: prev, step_size
struct RpropStep {
  Common common;
  float eta_minus, eta_plus, step_min, step_max;
};
void rprop(const Slice& slice, const RpropStep& step);

/// state: ax
struct AsgdStep {
  Common common;
  float eta, mu;  ///< `shrink` carries 1 - lambd * eta
};
void asgd(const Slice& slice, const AsgdStep& step);

/// state: exp_avg
struct LionStep {
  Common common;
  Decay beta1, beta2;
  float lr;
};
void lion(const Slice& slice, const LionStep& step);

/// state: z; exp_avg_sq when `adaptive`. The parameter is y: it goes the share `towards_z` of the way to z and then
/// `y_rate` along the direction, z goes `-z_rate` along it. The direction is the gradient, over
/// `sqrt(exp_avg_sq / square_scale) + eps` when `adaptive`, and `decay` times y.
struct ScheduleFreeStep {
  Decay beta2;
  float eps, square_scale, decay, towards_z, y_rate, z_rate;
  bool adaptive;
};
void schedule_free(const Slice& slice, const ScheduleFreeStep& step);

/// state: exp_avg, exp_avg_sq. The direction is `exp_avg / mean_scale / (sqrt(exp_avg_sq / square_scale) + eps) +
/// decay * parameter`.
struct LambStep {
  Common common;
  Decay beta1, beta2;
  float eps, mean_scale, square_scale, decay;
};
struct SquareSums {
  double parameter = 0, direction = 0;
};
/// Moves the state and returns the squares that the layer's two norms are made of.
SquareSums lamb_moments(const Slice& slice, const LambStep& step);
/// Moves the parameter by `rate` times the direction.
void lamb_apply(const Slice& slice, const LambStep& step, float rate);

}  // namespace components::kernels
