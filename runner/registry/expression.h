#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/language/expression.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::registry {

/// A rule of `x-checks`, a condition or a constraint of a sweep: `warmup_steps < total_steps`, `n_embd % n_head == 0`,
/// `momentum > 0 or not nesterov`, in the language of core/language/expression.h. Names are keys of the component;
/// `betas[0]` and `schedule.wait` go inside.
///
/// A missing value (null, or settled only later) makes expressions of it unknown, except `x is null`; so does a value
/// of the wrong type, which is reported where its type is checked. An unknown rule holds.
class Expression {
 public:
  explicit Expression(std::shared_ptr<const core::Term> root) : root_(std::move(root)) {}

  /// False only when the values of `block` (a mapping) contradict the rule.
  bool holds(const core::Node& block) const { return decide(block).value_or(true); }
  /// Nothing when the rule is unknown.
  std::optional<bool> decide(const core::Node& block) const;
  /// The paths that the rule reads, in order of appearance, each once.
  std::vector<std::string> paths() const;
  /// The keys of the component that the rule reads, in order of appearance, each once; without what goes inside.
  std::vector<std::string> keys() const;

 private:
  std::shared_ptr<const core::Term> root_;
};

/// The Failure names what was expected and at which column of the rule.
core::Result<Expression> parse_expression(std::string_view rule);

/// `message` with each `{key}` replaced by the value as the user wrote it; `{a.b[0]}` goes inside.
std::string substitute_keys(std::string_view message, const core::Node& block);

}  // namespace runner::registry
