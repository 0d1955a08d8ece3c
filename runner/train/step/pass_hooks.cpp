#include "runner/train/step/pass_hooks.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "components/tensor/autocast.h"
#include "runner/core/log.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/placement/block_places.h"
#include "runner/train/placement/travelling_weights.h"
#include "runner/train/step/step_reference.h"
#include "runner/train/step/unit_hooks.h"

namespace runner::train {

PassHooks::PassHooks(Parts parts)
    : parts_(std::move(parts)),
      traced_(parts_.experiment.ranks != nullptr && core::log_options().level == core::LogLevel::kDebug),
      weight_value_(std::numeric_limits<double>::quiet_NaN()) {
  const BlockPlaces* const places = parts_.experiment.places.get();
  GradientStrategy* const strategy = parts_.strategy.wants_unit_hooks() ? &parts_.strategy : nullptr;
  TravellingWeights* const placement =
      places != nullptr && places->any_travels() ? parts_.experiment.placement.get() : nullptr;
  if (strategy == nullptr && placement == nullptr) return;
  unit_hooks_ = std::make_unique<UnitHooks>(*parts_.experiment.model, strategy, placement);
}

PassHooks::~PassHooks() = default;

double PassHooks::gradient_weight(const MicroBatch& micro) const {
  return parts_.window.weight_of(micro) * parts_.strategy.weight();
}

PassWeight PassHooks::loss_weight(const MicroBatch& micro) const {
  return {parts_.window.weight_of(micro), micro.count > 0 ? micro.count : 1};
}

std::vector<PassWeight> PassHooks::loss_weights() const {
  std::vector<PassWeight> weights;
  for (const MicroBatch& micro : parts_.window.mine()) weights.push_back(loss_weight(micro));
  return weights;
}

Pass PassHooks::pass_of(const MicroBatch& micro) const {
  const std::vector<MicroBatch>& mine = parts_.window.mine();
  return {&micro == &mine.front(), &micro == &mine.back(), micro.others_before};
}

at::Tensor PassHooks::forward(const MicroBatch& micro, components::TensorMap tensors) {
  parts_.strategy.before_forward(pass_of(micro));
  if (unit_hooks_ != nullptr) unit_hooks_->begin_pass();
  if (pass_of(micro).first) parts_.experiment.loss->take_figures();  // those of a step that was given up
  trace("forward");
  return sum_of_losses(std::move(tensors), gradient_weight(micro));
}

// After the pass only autograd holds what it needs, and the backward pass frees it block by block.
at::Tensor PassHooks::sum_of_losses(components::TensorMap activations, double weight) const {
  const Experiment& experiment = parts_.experiment;
  if (compares_outputs(experiment)) {
    experiment.step_reference->add_outputs(activations, parts_.options.autocast, /*whole=*/false);
  }
  const components::Autocast autocast(parts_.options.autocast);
  RECORD_USER_SCOPE("forward");
  // Leave the autocast of a block with its own number format before the next operation.
  if (parts_.options.autocast.by_block) {
    experiment.model->forward(activations);
  } else {
    experiment.model->forward_for_loss(activations);
  }
  return experiment.loss->sum(activations, weight * parts_.scaler.scale());
}

void PassHooks::backward(const MicroBatch& micro, const at::Tensor& sum) {
  trace("backward");
  parts_.strategy.before_backward(pass_of(micro));
  const double scaled = gradient_weight(micro) * parts_.scaler.scale();
  if (scaled != weight_value_) {
    weight_ = at::scalar_tensor(scaled, sum.options().requires_grad(false));
    weight_value_ = scaled;
  }
  {
    RECORD_USER_SCOPE("backward");
    torch::autograd::backward({sum}, {weight_});
  }
  if (unit_hooks_ != nullptr) unit_hooks_->end_pass();
  parts_.strategy.after_backward(pass_of(micro));
}

// Each part is weighted for the whole window, so sums over ranks are its gradient and loss.
void PassHooks::finish(StepResult& result, const std::exception_ptr& out_of_memory) {
  trace("exchange");
  const std::size_t figure_count = parts_.experiment.loss->figure_names().size();
  components::loss::Figures figures;
  if (figure_count > 0) figures = parts_.experiment.loss->take_figures();
  figures.sums.resize(figure_count);
  figures.counts.resize(figure_count);
  const std::function<std::vector<double>()> tell = [&] {
    std::vector<double> mine = {result.loss};
    mine.insert(mine.end(), figures.sums.begin(), figures.sums.end());
    mine.insert(mine.end(), figures.counts.begin(), figures.counts.end());
    const std::vector<double> more = parts_.notes.collect();
    mine.insert(mine.end(), more.begin(), more.end());
    return mine;
  };
  result.notes = parts_.strategy.finish({parts_.window.passes(), parts_.window.others_after(), tell, out_of_memory});
  if (!result.notes.empty()) {
    result.loss = 0;
    figures = {std::vector<double>(figure_count), std::vector<std::int64_t>(figure_count)};
  }
  for (std::vector<double>& notes : result.notes) {
    result.loss += notes[0];
    result.rank_losses.push_back(notes[0]);
    for (std::size_t i = 0; i < figure_count; ++i) {
      figures.sums[i] += notes[kOwnNotes + i];
      figures.counts[i] += static_cast<std::int64_t>(notes[kOwnNotes + figure_count + i]);
    }
    notes.erase(notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(kOwnNotes + 2 * figure_count));
  }
  result.figures.assign(figure_count, std::nullopt);
  for (std::size_t i = 0; i < figure_count; ++i) {
    if (figures.counts[i] > 0) result.figures[i] = figures.sums[i] / static_cast<double>(figures.counts[i]);
  }
}

/// For the message of a process that others wait for.
void PassHooks::trace(const char* what) const {
  if (traced_) core::log_debug("step " + std::to_string(parts_.progress.step + 1) + ": " + what);
}

}  // namespace runner::train
