#include "runner/train/experiment/weight_average.h"

#include <ATen/core/grad_mode.h>

#include <sstream>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/log.h"

namespace runner::train {
namespace {

using core::Node;

/// A saved tensor of the weight's shape, on its device.
at::Tensor saved(const core::StateReader& reader, const std::string& name, const at::Tensor& weight,
                 at::ScalarType type) {
  const at::IntArrayRef sizes = weight.sizes();
  at::Tensor tensor = reader.tensor(name);
  if (tensor.sizes() == sizes && tensor.scalar_type() == type) return tensor.to(weight.device());
  std::ostringstream message;
  message << "the average's " << name << " is " << tensor.scalar_type() << " " << tensor.sizes()
          << ", but the model asks for " << type << " " << sizes;
  throw core::RunError(message.str(), "the checkpoint is of another model; start a new run with --new");
}

}  // namespace

struct WeightAverage::Weight {
  std::string name;
  at::Tensor model;
  at::Tensor average;  // undefined before the first update
  at::Tensor trained;  // while the average is in the model

  bool is_rounded() const { return model.scalar_type() != at::kFloat; }
};

WeightAverage::WeightAverage(std::shared_ptr<components::weight_averaging::Averaging> averaging,
                             const std::vector<components::NamedTensor>& weights)
    : averaging_(std::move(averaging)) {
  for (const components::NamedTensor& weight : weights) {
    if (weight.tensor.is_floating_point()) weights_.push_back({weight.name, weight.tensor, {}, {}});
  }
}

WeightAverage::~WeightAverage() = default;

void WeightAverage::after_step(std::int64_t step) {
  if (averaging_ == nullptr || !averaging_->should_update(step)) return;
  const at::NoGradGuard no_grad;
  const double share = taken_ == 0 ? 1.0 : averaging_->weight_of_new(taken_);
  for (Weight& weight : weights_) {
    if (taken_ == 0) {
      weight.average = weight.model.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    } else {
      weight.average.lerp_(weight.model.detach().to(at::kFloat), share);
    }
  }
  ++taken_;
}

double WeightAverage::lr_factor(std::int64_t steps_done, double scheduled) const {
  return averaging_ != nullptr ? averaging_->lr_factor(steps_done, scheduled) : scheduled;
}

// The trained weights are kept, not recomputed: an evaluation of the average must not change a bit of the training.
void WeightAverage::use_average(bool average) {
  const at::NoGradGuard no_grad;
  if (average && taken_ > 0) {
    std::vector<at::Tensor> copies;  // all of them before the first change, in case memory runs out
    for (const Weight& weight : weights_) {
      copies.push_back(weight.trained.defined() ? weight.trained : weight.model.detach().clone());
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i].trained.defined()) continue;
      weights_[i].trained = std::move(copies[i]);
      weights_[i].model.detach().copy_(weights_[i].average);
    }
  }
  for (Weight& weight : weights_) {
    if (average || !weight.trained.defined()) continue;
    weight.model.detach().copy_(weight.trained);
    weight.trained.reset();
  }
}

void WeightAverage::copy_running_stats(const std::vector<components::NamedTensor>& measured) {
  const at::NoGradGuard no_grad;
  for (const components::NamedTensor& found : measured) {
    for (Weight& weight : weights_) {
      if (weight.name == found.name && weight.trained.defined()) weight.average.copy_(found.tensor);
    }
  }
}

bool WeightAverage::updates_bn_stats() const { return averages() && averaging_->updates_bn_stats() && taken_ > 0; }

void WeightAverage::reset() {
  taken_ = 0;
  for (Weight& weight : weights_) {
    weight.average.reset();
    weight.trained.reset();
  }
}

std::int64_t WeightAverage::bytes() const {
  std::int64_t elements = 0;
  for (const Weight& weight : weights_) elements += weight.model.numel();
  return averages() ? elements * std::int64_t{sizeof(float)} : 0;
}

void WeightAverage::save_state(core::StateWriter& writer) const {
  if (!averages()) return;
  writer.value("taken", Node::integer(taken_));
  for (const Weight& weight : weights_) {
    if (weight.trained.defined()) writer.tensor("trained." + weight.name, weight.trained);
    if (weight.average.defined() && (!weight.trained.defined() || weight.is_rounded())) {
      writer.tensor("average." + weight.name, weight.average);
    }
  }
}

void WeightAverage::load_state(const core::StateReader& reader) {
  reset();
  taken_ = reader.value("taken").as_integer();
  if (taken_ == 0) return;
  const at::NoGradGuard no_grad;
  for (Weight& weight : weights_) {
    if (const std::string name = "trained." + weight.name; reader.has(name)) {
      weight.trained = saved(reader, name, weight.model, weight.model.scalar_type());
    }
    if (weight.trained.defined() && !weight.is_rounded()) {
      weight.average = weight.model.detach().clone();
    } else {
      weight.average = saved(reader, "average." + weight.name, weight.model, at::kFloat);
    }
  }
  if (averages()) return;
  core::log_info("the recipe no longer averages weights: training continues with the trained ones");
  taken_ = 0;
  for (Weight& weight : weights_) weight.average.reset();
}

}  // namespace runner::train
