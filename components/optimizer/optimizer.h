#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
}

namespace components::optimizer {

/// Parameters with common settings, which override the optimizer's own.
struct ParamGroup {
  std::string name;  ///< the pattern that chose it; "default", "no_decay"
  std::vector<NamedTensor> parameters;
  std::optional<double> lr, weight_decay, momentum;
  std::optional<std::array<double, 2>> betas = {};
  std::optional<double> eps = {};
};

/// Consecutive elements of a parameter that an optimizer whose x-update is `blocks` keeps together: a process has whole
/// blocks, the last one of the parameter aside.
constexpr std::int64_t kStateBlock = 256;

/// Updates parameters by their `.grad`. Parameters without a gradient stay unchanged and have no state.
class Optimizer : public runner::core::Stateful {
 public:
  /// One step at each group's lr times the current factor.
  virtual void step() = 0;
  /// The schedule's factor of the base rates; 1 until set.
  virtual void set_lr_factor(double factor) = 0;
  /// The schedule's momentum, of all groups: beta1 of Adam. Nothing: the recipe's. Heeded by those that
  /// has_momentum().
  virtual void set_momentum(std::optional<double>) {}
  virtual bool has_momentum() const { return false; }
  /// Learning rate of the first group, as the next step will use it; `lr(i)` of group i.
  virtual double lr(std::size_t group = 0) const = 0;
  virtual const std::vector<ParamGroup>& groups() const = 0;
  /// State tensors per parameter after its first step: 0 sgd, 1 momentum, 2 adam, 4 adamw_8bit, with its scales.
  virtual int state_tensors_per_parameter() const = 0;
  /// Bytes that a checkpoint holds of its state for a whole parameter of this many elements.
  virtual std::int64_t saved_bytes(std::int64_t elements) const {
    return state_tensors_per_parameter() * elements * static_cast<std::int64_t>(sizeof(float));
  }
  /// Bytes of its state after every parameter has made a step; from shapes only.
  virtual std::int64_t state_bytes() const = 0;
  /// Temporary bytes while it updates a parameter of this many bytes.
  virtual std::int64_t step_bytes(std::int64_t /*parameter_bytes*/) const { return 0; }
  /// The same on the CPU.
  virtual std::int64_t cpu_step_bytes(std::int64_t parameter_bytes) const { return step_bytes(parameter_bytes); }
  /// True if it updates each parameter as soon as the backward pass has its gradient: step() is then called for each
  /// gradient as it arrives, while the others are freed or not computed yet.
  virtual bool steps_in_backward() const { return false; }
  /// True if the device of the parameters can leave a step out by itself: skip_if() is heeded.
  virtual bool can_skip() const { return false; }
  /// From now on step() leaves parameters and state tensors unchanged while `flag` is 1, and updates them while it is
  /// 0: a float32 scalar on their device, which the CPU does not read. So a skipped step is counted like any other. An
  /// undefined flag ends this.
  virtual void skip_if(const at::Tensor& /*flag*/) {}
  /// True if a graph of the device can repeat its step: the next four are heeded.
  virtual bool can_capture() const { return false; }
  /// From now on step() reads rates and counts from tensors on the device, as float32: a captured step rounds as any
  /// other.
  virtual void keep_rates_on_device() {}
  /// Starts the kernels of a step whose rates and counts are those of count_step(), for a graph. Every parameter has a
  /// gradient and has made a step. RunError otherwise, naming the first one that has none.
  virtual void capture_step() {}
  /// Call before each replay of capture_step(): counts the step and sets its rates on the device.
  virtual void count_step() {}
  /// True if the evaluation weights differ from the trained ones.
  virtual bool has_eval_weights() const { return false; }
  /// Replaces the parameters by the evaluation weights, or with false restores the trained ones bitwise. Does
  /// nothing if they are the same, or if already done. Do not call step() in between; the saved state holds the trained
  /// weights, and after loading they can be restored.
  virtual void use_eval_weights(bool) {}
};

struct Inputs {
  std::vector<ParamGroup> groups;  ///< at least one; each parameter in exactly one
  /// Elements of whole parameters by name, where the groups may hold some rows of them; of others as they are.
  std::map<std::string, std::int64_t> whole_elements = {};
};

/// Splits the parameters into groups by the recipe's `param_groups` (patterns with `*`, first match wins) and
/// `no_decay`: patterns, or the words `1d` (fewer than two dimensions), `bias`, and `norm` (scale and offset of a
/// norm). What `no_decay` names goes into a group of its own with weight decay 0, unless its written group has a decay.
/// A pattern without a match is an error at its location, with the nearest parameter name; one that matches only names
/// in `frozen`, which are in no group, is none. Never empty; omits groups without parameters.
std::vector<ParamGroup> make_param_groups(const runner::core::Node& block, const std::vector<NamedTensor>& parameters,
                                          runner::core::Diagnostics& diagnostics,
                                          const std::vector<std::string>& frozen = {});

std::shared_ptr<Optimizer> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::optimizer
