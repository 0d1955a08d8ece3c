#pragma once

#include <cstddef>
#include <memory>

namespace components::model {
class Model;
}

namespace runner::train {

class GradientStrategy;

/// Tells a strategy of every block of a pass. Backward, the blocks of a model count as a row: a block begins when the
/// gradient of its output is known, and ends when the block in front of it begins.
class UnitHooks {
 public:
  /// Of a strategy that watches_units(); both live longer. The model keeps the hooks, which do nothing after this.
  UnitHooks(components::model::Model& model, GradientStrategy& strategy);
  ~UnitHooks();
  UnitHooks(const UnitHooks&) = delete;
  UnitHooks& operator=(const UnitHooks&) = delete;

  /// Brackets a forward pass, and with end_pass() the backward pass that belongs to it: an evaluation is neither.
  void begin_pass();
  void end_pass();

 private:
  struct Live;

  std::shared_ptr<Live> live_;
};

}  // namespace runner::train
