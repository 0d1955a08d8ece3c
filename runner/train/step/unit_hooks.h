#pragma once

#include <cstddef>
#include <memory>

namespace components::model {
class Model;
}

namespace runner::train {

class GradientStrategy;
class TravellingWeights;

/// Notifies a strategy of every block of a pass, and has the weights of blocks that are placed elsewhere there for
/// their backward pass. In that the blocks count as a sequence: a block begins when the gradient of its output is
/// known, and ends when the preceding block begins.
class UnitHooks {
 public:
  /// For a strategy with wants_unit_hooks(), or null; and weights that travel, or null. They outlive this. The model
  /// keeps the hooks, which do nothing after this is destroyed.
  UnitHooks(components::model::Model& model, GradientStrategy* strategy, TravellingWeights* placement);
  ~UnitHooks();
  UnitHooks(const UnitHooks&) = delete;
  UnitHooks& operator=(const UnitHooks&) = delete;

  /// Brackets a forward pass, and with end_pass() its backward pass. Forward passes of evaluations are notified where a
  /// strategy holds_rows_alone().
  void begin_pass();
  void end_pass();

 private:
  struct Live;

  std::shared_ptr<Live> live_;
};

}  // namespace runner::train
