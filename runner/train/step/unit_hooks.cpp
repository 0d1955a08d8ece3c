#include "runner/train/step/unit_hooks.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "components/model/model.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/placement/travelling_weights.h"

namespace runner::train {

using components::TensorMap;
using components::block::Block;

struct UnitHooks::Live {
  GradientStrategy* strategy;
  TravellingWeights* placement;
  std::map<const Block*, std::size_t> positions;
  bool is_alive = true, in_pass = false;
  std::size_t next = 0;                     ///< units from here on have begun their backward pass
  std::optional<std::size_t> entered = {};  ///< by its backward pass

  bool wants_forward() const { return is_alive && (in_pass || (strategy != nullptr && strategy->holds_rows_alone())); }

  void reach(std::size_t unit) {
    while (in_pass && next > unit) {
      if (strategy != nullptr && next < positions.size()) strategy->after_unit_backward(next);
      --next;
      if (strategy != nullptr) strategy->before_unit_backward(next);
    }
  }

  void enter(std::size_t unit) {
    if (placement == nullptr || entered == unit) return;
    leave();
    placement->enter_backward(unit);
    entered = unit;
  }

  void leave() {
    if (placement != nullptr && entered) placement->leave_backward(*entered);
    entered.reset();
  }
};

UnitHooks::UnitHooks(components::model::Model& model, GradientStrategy* strategy, TravellingWeights* placement)
    : live_(std::make_shared<Live>(Live{strategy, placement, {}})) {
  for (const auto& block : model.blocks()) live_->positions.emplace(block.get(), live_->positions.size());
  model.add_hooks({
      .before_forward =
          [live = live_](const Block& block, TensorMap&) {
            if (live->strategy == nullptr || !live->wants_forward()) return;
            live->strategy->before_unit_forward(live->positions.at(&block));
          },
      .after_forward =
          [live = live_](const Block& block, TensorMap& activations) {
            if (!live->wants_forward()) return;
            const std::size_t unit = live->positions.at(&block);
            if (live->strategy != nullptr) live->strategy->after_unit_forward(unit);
            if (!live->in_pass) return;
            for (const components::TensorSpec& port : block.outputs()) {
              const at::Tensor* output = activations.find(port.name);
              if (output == nullptr) output = activations.find(components::kHidden);
              if (output == nullptr || !output->requires_grad()) continue;
              output->register_hook([live, unit](const at::Tensor&) {
                live->reach(unit);
                if (live->in_pass) live->enter(unit);
              });
            }
          },
  });
}

UnitHooks::~UnitHooks() { live_->is_alive = live_->in_pass = false; }

void UnitHooks::begin_pass() {
  live_->leave();  // of a pass that was given up
  live_->in_pass = true;
  live_->next = live_->positions.size();
}

void UnitHooks::end_pass() {
  live_->reach(0);
  live_->leave();
  if (live_->strategy != nullptr) live_->strategy->after_unit_backward(0);
  live_->in_pass = false;
}

}  // namespace runner::train
