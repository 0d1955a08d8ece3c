#pragma once

#include <cstddef>
#include <functional>

#include "components/tensor/autocast.h"

namespace components {
class TensorMap;
namespace model {
class Model;
}
}  // namespace components

namespace runner::train {

class AccumulationWindow;
struct Experiment;

/// What is asked about the micro-batches of a window.
struct WindowPass {
  const Experiment& experiment;     ///< whose window it is
  components::model::Model& model;  ///< its own, or one that each process has whole
  const AccumulationWindow& window;
  const components::AutocastOptions& autocast;
};

/// Makes a forward pass of each micro-batch of this process, without gradients and with the model in evaluation mode,
/// and calls `take` with its place in the window and what the model left for the loss. A collective; where memory runs
/// out in one process, all throw.
void pass_over_window(const WindowPass& pass,
                      const std::function<void(std::size_t micro, const components::TensorMap& tensors)>& take);

}  // namespace runner::train
