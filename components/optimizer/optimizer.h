#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace components {
struct NamedTensor;
}

namespace components::optimizer {

/// Parameters that share their settings. What is given overrides the optimizer's own.
struct Group {
  std::string name;  ///< the pattern that chose it; "default", "no_decay"
  std::vector<NamedTensor> parameters;
  std::optional<double> lr, weight_decay, momentum;
  std::optional<std::array<double, 2>> betas = {};
  std::optional<double> eps = {};
};

/// Moves parameters by their `.grad`. Parameters without a gradient stay as they are and have no state.
class Optimizer : public runner::core::Stateful {
 public:
  /// One step at each group's lr times the factor set last.
  virtual void step() = 0;
  /// The schedule's factor of the base rates; 1 until set.
  virtual void set_lr_factor(double factor) = 0;
  /// The schedule's momentum, of all groups: beta1 of Adam. Nothing: what the recipe says. Heeded by those that
  /// takes_momentum().
  virtual void set_momentum(std::optional<double>) {}
  virtual bool takes_momentum() const { return false; }
  /// Learning rate of the first group, as the next step will use it; `lr(i)` of group i.
  virtual double lr(std::size_t group = 0) const = 0;
  virtual const std::vector<Group>& groups() const = 0;
  /// Tensors of a parameter's size that it keeps beside each parameter once it has moved: 0 sgd, 1 momentum, 2 adam.
  virtual int moments() const = 0;
  /// Bytes of all the tensors that it keeps once every parameter has moved; from shapes alone.
  virtual std::int64_t state_bytes() const = 0;
  /// Bytes that it takes beside these while it moves a parameter of so many bytes.
  virtual std::int64_t step_bytes(std::int64_t /*parameter_bytes*/) const { return 0; }
  /// True when it is meant to move each parameter as soon as the backward pass has its gradient: step() is then called
  /// with each gradient as it arrives, all others being gone or yet to come.
  virtual bool steps_in_backward() const { return false; }
  /// True when the weights to be judged are not those that are trained.
  virtual bool has_judged_weights() const { return false; }
  /// Puts the weights that are to be judged in the parameters' place, and with false those that are trained back, bit
  /// for bit. Nothing happens where they are the same, or where it was done before. In between step() is not to be
  /// called; the state that is saved holds the trained weights, and loading it keeps them ready to be put back.
  virtual void use_judged_weights(bool) {}
};

struct Inputs {
  std::vector<Group> groups;  ///< at least one; each parameter in exactly one
};

/// Cuts the parameters into groups by the recipe's `param_groups` (patterns with `*`, first match wins) and `no_decay`:
/// patterns, or the words `1d` (fewer than two dimensions), `bias`, and `norm` (scale and offset of a norm). What
/// `no_decay` names goes into a group of its own with weight decay 0, unless its written group has a decay. A pattern
/// that matches nothing is an error at its place, with the nearest parameter name. Never empty; groups without
/// parameters are left out.
std::vector<Group> cut_groups(const runner::core::Node& block, const std::vector<NamedTensor>& parameters,
                              runner::core::Diagnostics& diagnostics);

std::shared_ptr<Optimizer> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::optimizer
