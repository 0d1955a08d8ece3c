#pragma once

#include <string_view>

#include "runner/core/node.h"
#include "runner/core/tensor_fwd.h"

namespace runner::core {

/// Takes down everything of a component that decides the next step. Values go to `trainer.json`, tensors to safetensors
/// beside it (not copied here: the caller saves before the loop goes on).
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  virtual void value(std::string_view name, Node value) = 0;
  virtual void tensor(std::string_view name, const at::Tensor& tensor) = 0;
};

/// Gives it back. A missing name or a tensor of another shape or type is a RunError that names it.
class StateReader {
 public:
  virtual ~StateReader() = default;
  virtual const Node& value(std::string_view name) const = 0;
  virtual bool has(std::string_view name) const = 0;
  /// A tensor of its own, on the CPU, as it was saved.
  virtual at::Tensor tensor(std::string_view name) const = 0;
};

/// What may be asked for its state at an optimizer-step boundary. Nothing to save is a good answer.
class Stateful {
 public:
  virtual ~Stateful() = default;
  virtual void save_state(StateWriter&) const {}
  virtual void load_state(const StateReader&) {}
};

}  // namespace runner::core
