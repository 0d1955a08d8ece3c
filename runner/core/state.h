#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/core/tensor_fwd.h"

namespace runner::core {

/// Where the rows of a process lie in a tensor that several processes share.
struct RowsPlace {
  std::vector<std::int64_t> whole;  ///< its shape; a tensor without dimensions is one row
  std::int64_t first = 0;
};

/// Collects the state of a component that affects the next step. Values go to `trainer.json`, tensors to safetensors
/// next to it (not copied here: the caller saves before the loop continues).
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  virtual void value(std::string_view name, Node value) = 0;
  virtual void tensor(std::string_view name, const at::Tensor& tensor) = 0;
  /// This process's rows of a tensor, of which others save theirs. Only where the save is one of several processes.
  virtual void rows(std::string_view /*name*/, const at::Tensor& /*rows*/, const RowsPlace& /*place*/) {
    RUNNER_ASSERT(false, "rows are saved by several processes");
  }
};

/// Reads it back. A missing name or a tensor of another shape or type is a RunError that names it.
class StateReader {
 public:
  virtual ~StateReader() = default;
  virtual const Node& value(std::string_view name) const = 0;
  virtual bool has(std::string_view name) const = 0;
  /// A new CPU tensor, as saved.
  virtual at::Tensor tensor(std::string_view name) const = 0;
};

/// An object with state, saved at optimizer-step boundaries. It may have nothing to save.
class Stateful {
 public:
  virtual ~Stateful() = default;
  virtual void save_state(StateWriter&) const {}
  virtual void load_state(const StateReader&) {}
};

}  // namespace runner::core
