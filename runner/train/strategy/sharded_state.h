#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/train/strategy/row_shards.h"

namespace runner::distributed {
class ProcessGroup;
}

namespace runner::train {

/// The state of an optimizer for rows of parameters, or of their averages. Each process saves its own, or the first
/// one, after gather(), that of whole parameters. Loads what any optimizer of the same kind has saved.
class ShardedState final : public core::Stateful {
 public:
  /// `wholes`: the parameters whose rows `part` moves, and the place of each; `copy`: the processes that share them.
  /// `part` and `copy` outlive this. `saves`: whether this process saves its rows; those of another copy are the same.
  /// `before_load` is called before `part` loads, for what it reads of the weights.
  ShardedState(core::Stateful& part, const components::NamedTensors& wholes, const std::vector<ShardPlace>& places,
               distributed::ProcessGroup& copy, bool saves, std::function<void()> before_load);

  /// A collective of the copy. The first process then holds all of the state, until release().
  void gather();
  void release();

  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  class Reader;

  struct Whole {
    at::Tensor tensor;
    ShardPlace place;

    bool has_rows_like(const at::Tensor& other) const {
      return other.sizes() == at::IntArrayRef(shard_sizes(tensor, place));
    }
    /// An element for each block of the rows.
    bool has_blocks_like(const at::Tensor& other) const {
      return place.block > 0 && other.dim() == 1 && other.size(0) == blocks_of(tensor, place).count;
    }
  };

  void save_rows(core::StateWriter& writer) const;
  /// `part_of`: what a process has of the whole tensor, whose shape is `sizes`.
  void gather_parts(const std::string& name, const at::Tensor& tensor, const std::vector<std::int64_t>& sizes,
                    const std::function<at::Tensor(const at::Tensor& whole, int process)>& part_of);
  void gather_owned(const std::vector<std::pair<std::string, at::Tensor>>& own);
  /// The parameter that a tensor `<buffer>.<parameter>` belongs to; null for none.
  const Whole* whole_of(std::string_view name) const;
  bool is_first() const;

  core::Stateful& part_;
  distributed::ProcessGroup& copy_;
  bool saves_;
  std::function<void()> before_load_;
  bool is_gathered_ = false;
  bool has_owners_ = false;  // some state belongs to one process alone, in any shape
  std::map<std::string, Whole, std::less<>> wholes_;
  std::vector<std::pair<std::string, core::Node>> values_;
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

}  // namespace runner::train
