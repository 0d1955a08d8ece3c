#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/autocast.h"
#include "runner/train/strategy/block_units.h"
#include "runner/train/strategy/sharded_gradients.h"
#include "runner/train/strategy/unit_weights.h"

namespace components::model {
class Model;
}

namespace runner::train {

/// Which units are gathered ahead of the one that runs.
struct Prefetch {
  std::size_t forward = 1, backward = 1;  ///< how many
  bool after = false;                     ///< in the backward pass they begin behind that of the unit, not before it
};

/// Processes that hold their rows of every parameter alone. A unit of blocks (BlockUnits) is gathered before it runs,
/// some units ahead (Prefetch), and freed behind it; its gradients are added up where the rows are as soon as its
/// backward pass is over.
///
/// The exchanges of a pass stand in a fixed list, and a process without samples, or whose pass failed, makes the rest
/// of them as well. Unit 0 stays whole from the forward to the backward pass. What is replicated is in no unit, and its
/// gradients are added up behind those of all units.
///
/// Without `accumulation.sync_each_batch` the exchanges of gradients are those of a step's last pass. What a process
/// adds up until then is float32.
///
/// A weight that the passes only multiply in a smaller type (autocast) is gathered in that type and has gradients of
/// it. Its rows, their sums of gradients and what is saved are float32.
///
/// Source  ZeRO stage 3, arXiv:1910.02054, section 5.3; torch.distributed.fsdp.fully_shard
class ShardedParameters final : public ShardedGradients {
 public:
  explicit ShardedParameters(const Experiment& experiment);

  void begin(const StrategyInputs& inputs) override;
  void end() override;
  bool wants_unit_hooks() const override { return true; }
  void begin_step(const StepPlan& plan) override;
  void before_forward(const Pass& pass) override;
  void before_backward(const Pass& pass) override;
  void after_backward(const Pass& pass) override;
  void before_unit_forward(std::size_t block) override;
  void after_unit_forward(std::size_t block) override;
  void before_unit_backward(std::size_t block) override;
  void after_unit_backward(std::size_t block) override;
  bool holds_rows_alone() const override { return !is_held_; }
  void hold_weights() override;
  void begin_forward() override;
  void end_forward() override;
  std::vector<components::TensorRows> saved_rows() override;
  std::vector<components::TensorRows> rows_to_load() override;
  void open_weight(const std::string& name) override;
  void close_weight(const std::string& name) override;
  void fill_in_parts(const std::function<void()>& fill) override;
  void gather_state() override;
  void sync_weights() override { hold_weights(); }
  void before_tensors_written() override { take_old_rows(); }
  void on_tensors_written() override;
  void refresh_weights() override;
  void before_weights_loaded() override;
  void on_weights_loaded() override;
  std::optional<HeldBytes> held_bytes() const override;
  std::int64_t held_gradient_bytes(const at::Tensor& parameter) const override;
  void set_types_of_pass(bool of_pass) override;

 private:
  /// This process's rows of all parameters, or those that it saves.
  std::vector<components::TensorRows> all_rows(bool to_save) const;
  /// Of a parameter's name: its unit, and its place in that.
  std::pair<UnitWeights*, std::size_t> find(const std::string& name);
  struct Exchange {
    enum class Kind { kGather, kReduce, kReduceReplicated };
    Kind kind;
    std::size_t unit;  ///< not of what is replicated
  };
  /// Where a unit's exchanges stand in the list.
  struct Places {
    std::optional<std::size_t> forward, backward, reduce;
  };

  void begin_exchange() override;
  void end_exchange() override;
  void share_rows() override;
  components::NamedTensors make_shards() override;
  void watch_gradients(const StrategyInputs&) override {}  // they are sent block by block
  at::Tensor rows_it_begins_as(const std::string& parameter) const;
  void make_units();
  void agree_on_types();
  std::int64_t exchanges_of(std::int64_t passes) const override { return passes; }
  void keep_gradients(const UnitWeights& unit);
  void give_gradients(const UnitWeights& unit);
  std::int64_t sent_bytes(const UnitWeights& unit) const;
  void begin_reduce(RowGradients& gradients, WeightMemory* memory);
  /// Whether a unit has a backward pass of its own.
  bool trains(std::size_t unit) const { return units_[unit].trains() || trains_replicated_[unit]; }
  void list_exchanges();
  bool stays_whole(std::size_t unit) const;
  /// The last unit whose gather begins in the backward pass before, or behind, that of this one; it may be this one.
  std::size_t ahead_of(std::size_t unit) const;
  void free_units();
  void take_old_rows();
  /// Begins the exchanges up to that one.
  void reach(std::optional<std::size_t> exchange);
  void finish_reduce();
  void exchange_up_to(std::size_t end);
  void end_pass();

  const components::model::Model& model_;
  std::vector<components::AutocastOptions::Type> autocast_;  // by block
  c10::Device device_;
  std::map<std::string, at::Tensor> begins_as_;  // by parameter, until the units have them; empty: whole ones
  UnitSizes unit_sizes_;
  bool frees_after_forward_ = true;
  Prefetch prefetch_;
  WeightMemory memory_;
  std::vector<at::Tensor> kept_;  // by trained parameter: its whole gradient of earlier passes, if not in its place
  std::map<std::string, std::pair<UnitWeights*, std::size_t>> by_name_;  // see find()
  std::vector<UnitWeights> units_;                                       // the first one stays whole within a pass
  BlockUnits blocks_;                                                    // of these units
  std::vector<Exchange> exchanges_;                                      // of a pass
  std::vector<Places> places_;                                           // by unit
  std::size_t next_ = 0;                                                 // of the exchanges
  bool types_agree_ = false;                                             // of the units, among the processes
  RowGradients* reducing_ = nullptr;                                     // gradients that are on their way
  components::NamedTensors kept_whole_;                                  // what is replicated, trained or not
  RowGradients replicated_gradients_;                                    // of those that are trained
  std::vector<bool> trains_replicated_;                                  // by unit: its blocks have some of these
  std::size_t lowest_ = 1;                                               // the first unit that has a backward pass
  std::int64_t steps_ = 0;
  bool in_pass_ = false, in_backward_ = false, is_forward_alone_ = false;
  bool reduces_ = true;       // the pass sends its gradients
  bool is_held_ = true;       // between steps: the parameters are whole
  bool were_held_ = false;    // before their rows were written to
  bool first_holds_ = false;  // or those of the first rank, for a save
  bool rows_are_old_ = true;  // and newer than the rows
};

}  // namespace runner::train
