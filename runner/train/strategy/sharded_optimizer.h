#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/train/strategy/ddp.h"
#include "runner/train/strategy/row_shards.h"

namespace runner::distributed {
class Mesh;
class ProcessGroup;
}  // namespace runner::distributed

namespace runner::train {

class ShardedState;

/// Several processes, each with the whole model, that divide the optimizer's state: each moves some rows of every
/// parameter by the reduced gradients, or all of some parameters where the optimizer needs whole ones, and gets the
/// others from the processes of its copy; each moves all of those that are replicated. Any number of processes resumes
/// from its checkpoints.
///
/// Source  ZeRO stage 1, arXiv:1910.02054, section 5.1
class ShardedOptimizer : public Ddp {
 public:
  /// A collective where several copies share the processes. Without processes (`plan`) it is that of the first one.
  explicit ShardedOptimizer(const Experiment& experiment);
  ~ShardedOptimizer() override;

  void attach(const std::vector<Unit>& units) override;
  components::NamedTensors optimizer_tensors() override { return shards_; }
  void begin(const StrategyInputs& inputs) override;
  void end() override;
  void begin_step(const StepPlan& plan) override;
  void update(const SecondPass& again, bool& began) override;
  void sync_weights() override { refresh_weights(); }
  void hold_weights() override { refresh_weights(); }
  void on_weights_loaded() override { refresh_weights(); }
  void on_tensors_written() override { are_behind_ = true; }
  void refresh_weights() override;
  std::vector<std::int64_t> sharing_bytes() const override;
  core::Stateful& state_of(core::Stateful& part) override;
  int processes_that_save() const override { return place_.count; }
  bool saves_rows() const override { return copy_ != nullptr && place_.count > 1; }
  std::vector<components::TensorRows> saved_rows() override;
  void gather_state() override;

 protected:
  const components::NamedTensors& wholes() const { return wholes_; }
  const components::NamedTensors& shards() const { return shards_; }
  const ShardPlace& place() const { return place_; }
  /// Whether every process holds all of a parameter.
  bool is_replicated(const std::string& parameter) const { return replicated_.contains(parameter); }
  /// That of a trained parameter, by its position in wholes().
  const ShardPlace& place(std::size_t parameter) const { return places_[parameter]; }
  /// Of any parameter of the model.
  const ShardPlace& place_of_parameter(const at::Tensor& parameter) const;
  /// The processes of this one's copy; null in a plan.
  distributed::ProcessGroup* copy() const { return copy_; }
  /// Those of other copies with the same rows; null where there is one copy.
  distributed::ProcessGroup* others() const;
  bool is_in_first_copy() const;

 private:
  struct Bucket;

  std::size_t flights() const;
  /// Bytes of the largest bucket's rows, of one process.
  std::int64_t most_row_bytes() const;
  void make_buckets();
  /// Gives the optimizer the gradients of this process's rows.
  virtual void hand_over_gradients();
  /// This process's rows of each of wholes(), with gradients.
  virtual components::NamedTensors make_shards();
  /// After the optimizer has moved the rows: gets those of the others.
  virtual void share_rows();

  std::shared_ptr<distributed::ProcessGroup> ranks_;  // null in a plan
  std::unique_ptr<distributed::Mesh> mesh_;           // null for a single copy
  distributed::ProcessGroup* copy_ = nullptr;         // the processes that hold one copy
  ShardPlace place_;
  std::set<std::string> replicated_;          // parameters, by name
  bool deals_ = false;                        // the optimizer needs whole tensors: each has an owner
  components::NamedTensors wholes_, shards_;  // parameters, and this process's rows of them
  std::vector<ShardPlace> places_;            // of each of them
  std::map<const c10::TensorImpl*, std::size_t> positions_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> large_;  // dealt parameters that their owner sends from where they are
  bool are_behind_ = false;         // the parameters, of rows that others have written to
  std::vector<std::pair<const core::Stateful*, std::unique_ptr<ShardedState>>> states_;  // of which parts
};

/// How many processes share the optimizer's state by the recipe; 1: nothing is sharded.
int shard_count(const resolve::Recipe& recipe);
/// ShardPlace::block by the recipe's optimizer.
std::int64_t state_block(const resolve::Recipe& recipe);

}  // namespace runner::train
