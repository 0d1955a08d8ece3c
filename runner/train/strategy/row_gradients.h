#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/strategy/row_shards.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

class WeightMemory;

/// Whether a parameter is large enough that its rows travel by themselves, and every process has some; the others are
/// packed together.
bool travels_alone(const at::Tensor& parameter, const ShardPlace& place);

/// The gradients of some trained parameters, of which each process gets its rows, added up over all processes: half the
/// bytes of an all-reduce, which those get that are replicated. Sums are float32 and always in one order, so a run has
/// the same bits each time, and what is replicated has them on every process.
class RowGradients {
 public:
  /// A process's rows of a parameter's gradient over all processes, float32, and whether any had one. Those that are
  /// all of their storage may be kept.
  using Receive = std::function<void(std::size_t parameter, const at::Tensor& rows, bool used)>;

  struct Parameter {
    at::Tensor whole;
    std::size_t position = 0;       ///< what Receive is called with
    c10::ScalarType type;           ///< in which a large one travels
    std::optional<int> owner = {};  ///< who gets all of its rows; nothing: each process gets some
    bool replicated = false;        ///< each gets all of them
  };

  RowGradients();
  RowGradients(std::vector<Parameter> parameters, const ShardPlace& place);
  ~RowGradients();
  RowGradients(RowGradients&&) noexcept;
  RowGradients& operator=(RowGradients&&) noexcept;

  bool empty() const { return parameters_.empty(); }

  /// A collective of the processes that share a copy: sends each its rows of the gradients, and frees these. One that
  /// a process does not have counts as zeros. Returns at once. `memory`, if any, outlives the exchange: that of a large
  /// parameter without memory is what its gradient is received into.
  void begin(distributed::ProcessGroup& copy, WeightMemory* memory = nullptr);
  /// Waits for the rows and adds them up. `others`: the processes of other copies with the same rows, or null.
  void end(distributed::ProcessGroup* others, const Receive& receive);

 private:
  struct Flight;

  ShardPlace place_of(const Parameter& parameter, int process) const {
    return {process, place_.count, parameter.owner, parameter.replicated, place_.block};
  }
  std::int64_t elements_of(const Parameter& parameter, int process) const;
  void send(const Parameter& parameter, distributed::ProcessGroup& copy);
  void send_packed(const std::vector<bool>& has_gradient, distributed::ProcessGroup& copy);
  void send_replicated(distributed::ProcessGroup& copy);
  at::Tensor room_for(const Parameter& parameter) const;
  void launch(Flight flight, const std::vector<std::int64_t>& to, distributed::ProcessGroup& copy);

  std::vector<Parameter> parameters_;  // those that travel alone and the packed ones; of the replicated ones the same
  std::size_t alone_ = 0, divided_ = 0, wholes_ = 0;  // where each of these ends, but for the last
  std::vector<Flight> flights_;  // of each that travels alone, of the packed ones; of the replicated ones the same
  ShardPlace place_;
  WeightMemory* memory_ = nullptr;  // of the exchange that is on its way
};

}  // namespace runner::train
