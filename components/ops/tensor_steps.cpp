#include "components/ops/tensor_steps.h"

#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace components::kernels {
namespace {

at::Tensor gradient_of(const Common& common, const TensorSlice& slice) {
  at::Tensor g = common.sign == 1.0F ? slice.gradient : slice.gradient * common.sign;
  return common.weight_decay == 0.0F ? g : g.add(slice.parameter, common.weight_decay);
}

/// mean = keep * mean + add * square(g)
void mean_of_squares(const at::Tensor& mean, const at::Tensor& g, const Decay& decay) {
  mean.mul_(decay.keep).addcmul_(g, g, decay.add);
}

at::Tensor lamb_direction(const TensorSlice& slice, const LambStep& step) {
  const at::Tensor denominator = (slice.state[1] / step.square_scale).sqrt_().add_(step.eps);
  return (slice.state[0] / step.mean_scale).div_(denominator).add_(slice.parameter, step.decay);
}

double sum_of_squares(const at::Tensor& tensor) {
  const double norm = at::linalg_vector_norm(tensor, 2).item<double>();
  return norm * norm;
}

}  // namespace

void adagrad(const TensorSlice& slice, const AdagradStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  slice.state[0].addcmul_(g, g);
  slice.parameter.addcdiv_(g, slice.state[0].sqrt().add_(step.eps), -step.rate);
}

void rmsprop(const TensorSlice& slice, const RmspropStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  const auto& [square, buffer, mean] = slice.state;
  mean_of_squares(square, g, step.alpha);
  at::Tensor variance = square;
  if (step.centered) {
    mean.lerp_(g, step.alpha.add);
    variance = square.addcmul(mean, mean, -1);
  }
  at::Tensor move = g / variance.sqrt().add_(step.eps);
  if (step.momentum > 0.0F) move = buffer.mul_(step.momentum).add_(move);
  slice.parameter.add_(move, -step.lr);
}

void adadelta(const TensorSlice& slice, const AdadeltaStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  const auto& [square, moved, unused] = slice.state;
  mean_of_squares(square, g, step.rho);
  const at::Tensor delta = (moved + step.eps).sqrt_().div_((square + step.eps).sqrt_()).mul_(g);
  mean_of_squares(moved, delta, step.rho);
  slice.parameter.add_(delta, -step.lr);
}

void adamax(const TensorSlice& slice, const AdamaxStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  const auto& [mean, largest, unused] = slice.state;
  mean.lerp_(g, step.beta1.add);
  largest.copy_(at::maximum(largest * step.beta2.keep, g.abs().add_(step.eps)));  // keeps a NaN of the gradient
  slice.parameter.addcdiv_(mean, largest, -step.rate);
}

void moments(const TensorSlice& slice, const MomentStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  const auto& [mean, square, unused] = slice.state;
  mean.lerp_(g, step.beta1.add);
  mean_of_squares(square, g, step.beta2);
  if (step.common.shrink != 1.0F) slice.parameter.mul_(step.common.shrink);
  if (!step.adaptive) {
    slice.parameter.add_(g, -step.gradient_rate).add_(mean, -step.mean_rate);
    return;
  }
  const at::Tensor denominator = (square * step.square_scale).sqrt_().add_(step.eps);
  slice.parameter.addcdiv_(g, denominator, -step.gradient_rate).addcdiv_(mean, denominator, -step.mean_rate);
}

void rprop(const TensorSlice& slice, const RpropStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  const auto& [before, size, unused] = slice.state;
  const at::Tensor agreement = g * before;
  const at::Tensor turned = agreement.lt(0);
  size.copy_(at::where(agreement.gt(0), size * step.eta_plus, at::where(turned, size * step.eta_minus, size)));
  size.clamp_(step.step_min, step.step_max);
  before.copy_(g.masked_fill(turned, 0.0));  // where the sign turned, this step is sat out
  slice.parameter.addcmul_(before.sign(), size, -1);
}

void asgd(const TensorSlice& slice, const AsgdStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  slice.parameter.mul_(step.common.shrink).add_(g, -step.eta);
  if (step.mu == 1.0F) {
    slice.state[0].copy_(slice.parameter);
  } else {
    slice.state[0].lerp_(slice.parameter, step.mu);
  }
}

void lion(const TensorSlice& slice, const LionStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  const at::Tensor& mean = slice.state[0];
  const at::Tensor direction = (mean * step.beta1.keep).add_(g, step.beta1.add).sign_();
  slice.parameter.mul_(step.common.shrink).add_(direction, -step.lr);
  mean.mul_(step.beta2.keep).add_(g, step.beta2.add);
}

void schedule_free(const TensorSlice& slice, const ScheduleFreeStep& step) {
  const auto& [z, square, unused] = slice.state;
  at::Tensor direction = slice.gradient;
  if (step.adaptive) {
    mean_of_squares(square, direction, step.beta2);
    direction = direction / (square / step.square_scale).sqrt_().add_(step.eps);
  }
  direction = direction.add(slice.parameter, step.decay);
  slice.parameter.lerp_(z, step.towards_z).add_(direction, step.y_rate);
  z.add_(direction, -step.z_rate);
}

SquareSums lamb_moments(const TensorSlice& slice, const LambStep& step) {
  const at::Tensor g = gradient_of(step.common, slice);
  slice.state[0].mul_(step.beta1.keep).add_(g, step.beta1.add);
  mean_of_squares(slice.state[1], g, step.beta2);
  return {sum_of_squares(slice.parameter), sum_of_squares(lamb_direction(slice, step))};
}

void lamb_apply(const TensorSlice& slice, const LambStep& step, float rate) {
  slice.parameter.add_(lamb_direction(slice, step), -rate);
}

}  // namespace components::kernels
