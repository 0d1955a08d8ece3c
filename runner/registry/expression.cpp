#include "runner/registry/expression.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runner/core/text/text.h"

namespace runner::registry {
namespace {

using core::Node;
using core::Term;
using Op = Term::Op;

constexpr std::size_t kShownBytes = 12;

/// What a term comes to; nothing set means unknown.
struct Value {
  std::optional<double> number;
  std::optional<std::string> text;
  std::optional<bool> truth;
  bool null = false;

  bool known() const { return number || text || truth; }
};

Value of_number(std::optional<double> number) {
  Value value;
  value.number = number;
  return value;
}

Value of_text(const std::string& text) {
  Value value;
  value.text = text;
  return value;
}

Value of_truth(std::optional<bool> truth) {
  Value value;
  value.truth = truth;
  return value;
}

Value value_of(const Node* node) {
  Value value;
  if (node == nullptr || node->is_null()) {
    value.null = true;
  } else if (node->is_number()) {
    value.number = node->as_double();
  } else if (node->is_bool()) {
    value.truth = node->as_bool();
  } else if (node->is_string()) {
    value.text = node->as_string();
  }
  return value;
}

std::optional<bool> equal(const Value& left, const Value& right) {
  if (left.number && right.number) return *left.number == *right.number;
  if (left.text && right.text) return *left.text == *right.text;
  if (left.truth && right.truth) return *left.truth == *right.truth;
  if (left.known() && right.known()) return false;
  return std::nullopt;
}

std::optional<double> length_of(const Node& node) {
  if (node.is_sequence()) return static_cast<double>(node.items().size());
  if (node.is_mapping()) return static_cast<double>(node.entries().size());
  if (node.is_string()) return static_cast<double>(node.as_string().size());
  return std::nullopt;
}

std::optional<bool> rises(const Node& node) {
  if (!node.is_sequence()) return std::nullopt;
  const std::vector<Node>& items = node.items();
  if (!std::all_of(items.begin(), items.end(), [](const Node& item) { return item.is_number(); })) return std::nullopt;
  const auto no_later = [](const Node& one, const Node& next) { return one.as_double() >= next.as_double(); };
  return std::adjacent_find(items.begin(), items.end(), no_later) == items.end();
}

/// The values of a block, which may be unknown yet.
class BlockValues final : public core::Evaluator {
 public:
  explicit BlockValues(const Node& block) : block_(block) {}

  std::optional<bool> truth(const Term& term) const override { return value(term).truth; }

 private:
  Value value(const Term& term) const {
    switch (term.op) {
      case Op::kNumber: return of_number(term.number);
      case Op::kText: return of_text(term.text);
      case Op::kTrue: return of_truth(true);
      case Op::kFalse: return of_truth(false);
      case Op::kNull: return value_of(nullptr);
      case Op::kName: return value_of(block_.at_path(term.text));
      case Op::kLength:
      case Op::kRises: {
        const Node* node = block_.at_path(term.text);
        if (node == nullptr) return {};
        return term.op == Op::kLength ? of_number(length_of(*node)) : of_truth(rises(*node));
      }
      case Op::kNegate: {
        const auto number = value(*term.terms[0]).number;
        return number ? of_number(-*number) : Value{};
      }
      case Op::kNot:
      case Op::kAnd:
      case Op::kOr: return of_truth(core::decide(term, *this));
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kDivide:
      case Op::kRemainder: return of_number(arithmetic(term));
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
      case Op::kEqual:
      case Op::kNotEqual: return of_truth(comparison(term));
      case Op::kContains:
      case Op::kMatches: return of_truth(text_test(term));
      case Op::kIn:
      case Op::kNotIn: return of_truth(membership(term));
      case Op::kIsNull: return of_truth(value(*term.terms[0]).null);
      case Op::kIsNotNull: return of_truth(!value(*term.terms[0]).null);
      case Op::kTag: break;  // of a filter
    }
    return {};
  }

  std::optional<double> arithmetic(const Term& term) const {
    const auto left = value(*term.terms[0]).number, right = value(*term.terms[1]).number;
    if (!left || !right) return std::nullopt;
    if ((term.op == Op::kDivide || term.op == Op::kRemainder) && *right == 0.0) return std::nullopt;
    switch (term.op) {
      case Op::kAdd: return *left + *right;
      case Op::kSubtract: return *left - *right;
      case Op::kMultiply: return *left * *right;
      case Op::kDivide: return *left / *right;
      default: return std::fmod(*left, *right);
    }
  }

  std::optional<bool> comparison(const Term& term) const {
    const Value left = value(*term.terms[0]), right = value(*term.terms[1]);
    if (term.op == Op::kEqual || term.op == Op::kNotEqual) {
      const std::optional<bool> same = equal(left, right);
      return same ? std::optional(*same == (term.op == Op::kEqual)) : std::nullopt;
    }
    if (!left.number || !right.number) return std::nullopt;
    switch (term.op) {
      case Op::kLess: return *left.number < *right.number;
      case Op::kLessEqual: return *left.number <= *right.number;
      case Op::kGreater: return *left.number > *right.number;
      default: return *left.number >= *right.number;
    }
  }

  std::optional<bool> text_test(const Term& term) const {
    const auto text = value(*term.terms[0]).text;
    if (!text) return std::nullopt;
    if (term.op == Op::kMatches) return term.pattern->is_in(*text);
    const auto part = value(*term.terms[1]).text;
    return part ? std::optional(core::lower(*text).find(core::lower(*part)) != std::string::npos) : std::nullopt;
  }

  std::optional<bool> membership(const Term& term) const {
    const Value wanted = value(*term.terms[0]);
    if (!wanted.known()) return std::nullopt;
    const bool found = std::any_of(term.terms.begin() + 1, term.terms.end(),
                                   [&](const auto& member) { return equal(wanted, value(*member)).value_or(false); });
    return found == (term.op == Op::kIn);
  }

  const Node& block_;
};

void add_once(std::vector<std::string>& words, std::string word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
}

void collect_paths(const Term& term, std::vector<std::string>& paths) {
  if (term.op == Op::kName || term.op == Op::kLength || term.op == Op::kRises) add_once(paths, term.text);
  for (const auto& inner : term.terms) collect_paths(*inner, paths);
}

}  // namespace

std::optional<bool> Expression::decide(const Node& block) const { return core::decide(*root_, BlockValues(block)); }

std::vector<std::string> Expression::paths() const {
  std::vector<std::string> paths;
  collect_paths(*root_, paths);
  return paths;
}

std::vector<std::string> Expression::keys() const {
  std::vector<std::string> keys;
  for (const std::string& path : paths()) add_once(keys, path.substr(0, path.find_first_of(".[")));
  return keys;
}

core::Result<Expression> parse_expression(std::string_view rule) {
  core::ExpressionProblem problem;
  auto root = core::read_expression(rule, core::Names::kKeys, problem);
  if (root) return Expression(std::move(root));
  const std::string place = " at column " + std::to_string(problem.at + 1);
  const std::string hint = "the rule is `" + std::string(rule) + "`";
  if (!problem.message.empty()) return core::Failure{problem.message + place, problem.hint};
  const std::string there =
      problem.at < rule.size() ? "`" + std::string(rule.substr(problem.at, kShownBytes)) + "`" : "the end";
  return core::Failure{"expected " + problem.wanted + place + ", got " + there, hint};
}

std::string substitute_keys(std::string_view message, const Node& block) {
  std::string text;
  for (std::size_t i = 0; i < message.size();) {
    const std::size_t end = message[i] == '{' ? message.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      text += message[i++];
      continue;
    }
    const Node* node = block.at_path(std::string(message.substr(i + 1, end - i - 1)));
    if (node == nullptr) {
      text += message.substr(i, end - i + 1);
    } else {
      text += node->is_sequence() || node->is_mapping() ? core::to_json(*node, -1) : node->scalar_text();
    }
    i = end + 1;
  }
  return text;
}

}  // namespace runner::registry
