#include "runner/train/experiment/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/gradients.h"

namespace runner::train {

using core::Node;

GradScaler::GradScaler(const Options& options)
    : options_(options), scale_(static_cast<float>(options.init_scale)), hysteresis_tracker_(options.hysteresis) {}

bool GradScaler::unscale(const components::NamedTensors& parameters) const {
  const at::Tensor found = unscale_on_device(parameters);
  return !found.defined() || found.item<float>() == 0.0F;
}

at::Tensor GradScaler::unscale_on_device(const components::NamedTensors& parameters) const {
  if (!options_.enabled) return {};
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return {};
  at::Tensor found;
  const double exact = 1.0 / static_cast<double>(scale_);
  const bool fits = exact <= static_cast<double>(std::numeric_limits<float>::max());
  for (const std::vector<at::Tensor>& some : by_device(gradients)) {
    const auto options = at::TensorOptions(at::kFloat).device(some.front().device());
    const at::Tensor inverse = at::scalar_tensor(fits ? exact : std::numeric_limits<double>::infinity(), options);
    at::Tensor found_here = at::zeros({1}, options);
    at::_amp_foreach_non_finite_check_and_unscale_(some, found_here, inverse);
    found = found.defined() ? at::maximum(found, found_here.to(found.device())) : found_here;
  }
  return found.squeeze(0);
}

// _amp_update_scale_: the product in double, the scale in float32.
void GradScaler::update(bool overflowed) {
  if (!options_.enabled) return;
  is_stuck_ = false;
  if (overflowed) {
    growth_tracker_ = 0;
    if (!options_.adapts) {
      is_stuck_ = true;
    } else if (hysteresis_tracker_ > 1) {
      --hysteresis_tracker_;
    } else {
      const auto fallen = static_cast<float>(static_cast<double>(scale_) * options_.backoff_factor);
      is_stuck_ = static_cast<double>(scale_) <= options_.min_scale;
      if (!is_stuck_) scale_ = std::max(fallen, static_cast<float>(options_.min_scale));
    }
    return;
  }
  if (!options_.adapts || ++growth_tracker_ < options_.growth_interval) return;
  const auto grown = static_cast<float>(static_cast<double>(scale_) * options_.growth_factor);
  if (std::isfinite(grown)) scale_ = grown;
  growth_tracker_ = 0;
  hysteresis_tracker_ = options_.hysteresis;
}

void GradScaler::save_state(core::StateWriter& writer) const {
  if (!options_.enabled) return;
  writer.value("scale", Node::floating(static_cast<double>(scale_)));
  writer.value("growth_factor", Node::floating(options_.growth_factor));
  writer.value("backoff_factor", Node::floating(options_.backoff_factor));
  writer.value("growth_interval", Node::integer(options_.growth_interval));
  writer.value("_growth_tracker", Node::integer(growth_tracker_));
  if (options_.hysteresis > 1) writer.value("_hysteresis_tracker", Node::integer(hysteresis_tracker_));
}

// Factors and interval come from the recipe: the resume contract has compared them.
void GradScaler::load_state(const core::StateReader& reader) {
  if (options_.adapts) scale_ = static_cast<float>(reader.value("scale").as_double());
  growth_tracker_ = reader.value("_growth_tracker").as_integer();
  if (reader.has("_hysteresis_tracker")) hysteresis_tracker_ = reader.value("_hysteresis_tracker").as_integer();
}

}  // namespace runner::train
