#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/language/pattern.h"

namespace runner::core {

/// One node of an expression: `warmup_steps < total_steps`, `val/loss < 2 and not status in (failed, crashed)`. The
/// language is described in docs/guides/expressions.md.
struct Term {
  enum class Op {
    kNumber,  ///< `number`, written as `text`
    kText,    ///< `text`
    kTrue,
    kFalse,
    kNull,
    kName,    ///< the value of the name `text`; where a truth is asked for: whether it is true
    kLength,  ///< of the list `text`
    kRises,   ///< whether each number of the list `text` is larger than the one before
    kTag,     ///< whether there is a tag of the form `text`, in which `*` matches any text
    kNegate,
    kNot,
    kAnd,  ///< of two or more
    kOr,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kContains,  ///< whatever the case
    kMatches,   ///< terms[0] and `pattern`
    kIn,        ///< whether terms[0] is one of the others
    kNotIn,
    kIsNull,
    kIsNotNull,
  };
  Op op = Op::kNull;
  double number = 0;
  std::string text;
  std::vector<std::shared_ptr<const Term>> terms;
  std::optional<Pattern> pattern;
  std::size_t at = 0, width = 1;  ///< in the text, in bytes
};

/// The syntax of names, which decides what can be an operator.
enum class Names {
  kKeys,     ///< `betas[0]`, `schedule.wait`: any other sign is an operator, and a word on the right is a name too
  kMetrics,  ///< `val/loss`, `optimizer.lr`, `tag:exp-*`: no arithmetic, and a word on the right is text
};

/// Why a text is no expression: what was wanted at a place, or the whole message.
struct ExpressionProblem {
  std::size_t at = 0, width = 1;  ///< in bytes; `at` is the length of the text where it ends too early
  std::string wanted;             ///< "a value"
  std::string there;              ///< the word or sign at the place; "" at the end
  std::string message, hint;      ///< in place of `wanted`
};

/// Null, and the problem, when it cannot be read. The depth of what is read is limited.
std::shared_ptr<const Term> read_expression(std::string_view text, Names names, ExpressionProblem& problem);

/// Where the values of names come from.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// Of a term that is no `and`, `or` or `not`; nothing when it is unknown.
  virtual std::optional<bool> truth(const Term& term) const = 0;
};

/// One part that is known can decide an `and` or an `or`; else what depends on something unknown is unknown.
std::optional<bool> decide(const Term& term, const Evaluator& values);

}  // namespace runner::core
