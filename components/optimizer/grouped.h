#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/optimizer/optimizer.h"
#include "runner/core/tensor_fwd.h"

namespace components::kernels {
struct Slice;
struct TensorSlice;
}  // namespace components::kernels

namespace components::optimizer {

/// Base of the optimizers: rates of each group, buffers of each parameter, which parameters have a gradient, and the
/// saved state. The concrete one only computes `update` for tensors at the same step.
///
/// State: tensors `<buffer>.<parameter>`, value `step`, and value `steps` for parameters that lag behind it; tensors
/// `trained.<parameter>` while the evaluation weights replace the parameters.
class GroupedOptimizer : public Optimizer {
 public:
  /// `buffer_names`: tensors of the parameter's shape that start at zero (`exp_avg`, `exp_avg_sq`).
  GroupedOptimizer(std::vector<ParamGroup> groups, double lr, double weight_decay,
                   std::vector<std::string> buffer_names);
  ~GroupedOptimizer() override;

  void step() final;
  void set_lr_factor(double factor) final { lr_factor_ = factor; }
  void set_momentum(std::optional<double> momentum) final { momentum_ = momentum; }
  double lr(std::size_t group = 0) const final;
  const std::vector<ParamGroup>& groups() const final { return groups_; }
  int state_tensors_per_parameter() const override { return static_cast<int>(buffer_names_.size()); }
  std::int64_t state_bytes() const final;
  void save_state(runner::core::StateWriter& writer) const final;
  void load_state(const runner::core::StateReader& reader) final;
  void use_eval_weights(bool eval) final;
  void skip_if(const at::Tensor& flag) final;
  void keep_rates_on_device() final { keeps_rates_ = true; }
  void capture_step() final;
  void count_step() final;

 protected:
  /// Some or all parameters of one group; the lists run in parallel.
  struct Batch {
    const std::vector<at::Tensor>& parameters;
    const std::vector<at::Tensor>& gradients;
    const std::vector<std::vector<at::Tensor>>& buffers;  ///< buffers[k][i]: buffer_names[k] of parameters[i]
    std::int64_t step;                                    ///< 1 in the first step of these parameters
    double lr, weight_decay;
    const ParamGroup& group;
    double lr_factor;  ///< factor of the schedule; `lr` includes it
    /// The schedule's, or else the group's; nothing: the optimizer's own.
    std::optional<double> momentum;
    /// The flag of skip_if(), for those that can_skip(), as LibTorch's fused kernels want it.
    const std::optional<at::Tensor>& skip;
    /// `lr` and `step` as float32 scalars on the device, after keep_rates_on_device(); else undefined.
    const at::Tensor &lr_there, &step_there;
  };
  /// Updates the parameters in place; called without gradient recording.
  virtual void update(const Batch& batch) = 0;
  /// A buffer before a parameter's first step: zeros of its shape unless overridden. Undefined if this parameter needs
  /// none. The tensor may have a shape alone, on the meta device.
  virtual at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const;
  /// Computes the evaluation weights of a trained parameter in place from its buffers: `buffers[k]` is buffer_names[k].
  virtual void compute_eval_weights(at::Tensor&, const std::vector<at::Tensor>& /*buffers*/) const {}
  static bool is_on_cpu(const Batch& batch);
  static void refuse_other_than_float(const at::Tensor& tensor);
  /// One pass over all elements: `run(slice, i)` for pieces of parameter i with its first `elementwise` buffers, on all
  /// threads. The pieces do not depend on the number of threads. On a device other than the CPU a slice is a whole
  /// parameter, as a kernels::TensorSlice: `run` takes both. RunError when a parameter is not float32.
  template <typename Run>
  static void for_each_slice(const Batch& batch, std::size_t elementwise, const Run& run) {
    if (is_on_cpu(batch)) {
      for_each_piece(batch, elementwise, run);
    } else {
      for_each_tensor(batch, elementwise, run);
    }
  }

 private:
  struct State;

  static void for_each_piece(const Batch& batch, std::size_t elementwise,
                             const std::function<void(const kernels::Slice&, std::size_t)>& run);
  static void for_each_tensor(const Batch& batch, std::size_t elementwise,
                              const std::function<void(const kernels::TensorSlice&, std::size_t)>& run);
  void make_buffers(State& state, std::size_t parameter) const;
  at::Tensor saved_buffer(const runner::core::StateReader& reader, std::size_t kind, const std::string& parameter_name,
                          const at::Tensor& parameter) const;
  void step_together(State& state);
  void step_subset(State& state, std::int64_t steps_done);
  void set_rates(State& state, std::int64_t step) const;
  Batch whole_batch(const State& state) const;
  void update_part(const State& state, const Batch& batch);
  double weight_decay(std::size_t group) const;
  std::optional<double> momentum(std::size_t group) const { return momentum_ ? momentum_ : groups_[group].momentum; }

  std::vector<ParamGroup> groups_;
  double lr_, weight_decay_;
  double lr_factor_ = 1.0;
  bool keeps_rates_ = false;
  std::optional<double> momentum_;
  std::vector<std::string> buffer_names_;
  std::vector<std::unique_ptr<State>> states_;  // of each group: its small tensors, then its large ones
};

}  // namespace components::optimizer
