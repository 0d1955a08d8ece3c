#include "runner/registry/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace runner::registry {

struct Expression::Term {
  enum class Op {
    kNumber,
    kText,
    kTrue,
    kFalse,
    kNull,
    kKey,
    kLength,
    kRises,
    kNegate,
    kNot,
    kAnd,
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
    kIn,
    kNotIn,
    kIsNull,
    kIsNotNull,
  };
  Op op = Op::kNull;
  double number = 0.0;
  std::string text;  ///< of kText; the path of kKey, kLength and kRises
  std::vector<std::shared_ptr<const Term>> terms;
};

namespace {

using Term = Expression::Term;
using Op = Term::Op;
using TermPtr = std::shared_ptr<const Term>;
using core::Node;

constexpr int kDepthMax = 50;  // parentheses and signs within each other

TermPtr make(Op op, std::vector<TermPtr> terms = {}, std::string text = "", double number = 0.0) {
  auto term = std::make_shared<Term>();
  term->op = op;
  term->terms = std::move(terms);
  term->text = std::move(text);
  term->number = number;
  return term;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Recursive descent, one function a level of binding; the first problem stops it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  core::Result<Expression> parse() {
    TermPtr root = parse_or();
    skip_space();
    if (!failed_ && position_ < text_.size()) fail("an operator or the end");
    if (failed_) return core::Failure{failure_, "the rule is `" + std::string(text_) + "`"};
    return Expression(std::move(root));
  }

 private:
  TermPtr fail(const std::string& wanted) {
    if (!failed_) {
      failed_ = true;
      const std::string there =
          position_ < text_.size() ? "`" + std::string(text_.substr(position_, 12)) + "`" : std::string("the end");
      failure_ = "expected " + wanted + " at column " + std::to_string(position_ + 1) + ", got " + there;
    }
    position_ = text_.size();
    return make(Op::kNull);
  }

  void skip_space() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  bool take(std::string_view symbol) {
    skip_space();
    if (text_.substr(position_, symbol.size()) != symbol) return false;
    position_ += symbol.size();
    return true;
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (text_.substr(position_, word.size()) != word) return false;
    const std::size_t end = position_ + word.size();
    if (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) return false;
    position_ = end;
    return true;
  }

  TermPtr parse_or() {
    if (++depth_ > kDepthMax) return fail("less nesting");
    TermPtr left = parse_and();
    while (take_word("or")) left = make(Op::kOr, {left, parse_and()});
    --depth_;
    return left;
  }

  TermPtr parse_and() {
    TermPtr left = parse_not();
    while (take_word("and")) left = make(Op::kAnd, {left, parse_not()});
    return left;
  }

  TermPtr parse_not() {
    int count = 0;
    while (take_word("not")) ++count;
    TermPtr term = parse_comparison();
    return count % 2 == 1 ? make(Op::kNot, {term}) : term;
  }

  TermPtr parse_comparison() {
    TermPtr left = parse_sum();
    if (take_word("is")) {
      const bool negated = take_word("not");
      if (!take_word("null")) return fail("`null`");
      return make(negated ? Op::kIsNotNull : Op::kIsNull, {left});
    }
    if (take_word("in")) return parse_list(Op::kIn, left);
    if (take_word("not")) {
      if (!take_word("in")) return fail("`in`");
      return parse_list(Op::kNotIn, left);
    }
    // Two characters first, so that `<=` is not read as `<`.
    static constexpr std::pair<std::string_view, Op> kSymbols[] = {{"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual},
                                                                   {"==", Op::kEqual},     {"!=", Op::kNotEqual},
                                                                   {"<", Op::kLess},       {">", Op::kGreater}};
    for (const auto& [symbol, op] : kSymbols) {
      if (take(symbol)) return make(op, {left, parse_sum()});
    }
    return left;
  }

  TermPtr parse_list(Op op, TermPtr left) {
    std::vector<TermPtr> terms = {std::move(left)};
    if (!take("[")) return fail("`[`");
    if (take("]")) return make(op, std::move(terms));
    do {
      terms.push_back(parse_sum());
    } while (take(","));
    if (!take("]")) return fail("`,` or `]`");
    return make(op, std::move(terms));
  }

  TermPtr parse_sum() {
    TermPtr left = parse_product();
    while (!failed_) {
      if (take("+")) {
        left = make(Op::kAdd, {left, parse_product()});
      } else if (take("-")) {
        left = make(Op::kSubtract, {left, parse_product()});
      } else {
        break;
      }
    }
    return left;
  }

  TermPtr parse_product() {
    TermPtr left = parse_factor();
    while (!failed_) {
      if (take("*")) {
        left = make(Op::kMultiply, {left, parse_factor()});
      } else if (take("/")) {
        left = make(Op::kDivide, {left, parse_factor()});
      } else if (take("%")) {
        left = make(Op::kRemainder, {left, parse_factor()});
      } else {
        break;
      }
    }
    return left;
  }

  TermPtr parse_factor() {
    bool negative = false;
    while (take("-")) negative = !negative;
    TermPtr term = parse_atom();
    return negative ? make(Op::kNegate, {term}) : term;
  }

  TermPtr parse_atom() {
    if (take("(")) {
      TermPtr inner = parse_or();
      if (!take(")")) return fail("`)`");
      return inner;
    }
    skip_space();
    if (position_ >= text_.size()) return fail("a value");
    const char c = text_[position_];
    if (c == '"' || c == '\'') return parse_text(c);
    if (is_digit(c) || c == '.') return parse_number();
    if (take_word("true")) return make(Op::kTrue);
    if (take_word("false")) return make(Op::kFalse);
    if (take_word("null")) return make(Op::kNull);
    for (const std::string_view reserved : {"and", "or", "not", "in", "is"}) {
      if (take_word(reserved)) {
        position_ -= reserved.size();
        return fail("a value");
      }
    }
    if (!is_letter(c)) return fail("a value");
    std::string path = parse_path();
    if (const bool rises = path == "rises"; (rises || path == "len") && take("(")) {
      skip_space();
      const std::size_t start = position_;
      path = parse_path();
      if (path.empty() || !is_letter(path[0])) position_ = start;
      if (path.empty() || !is_letter(path[0]) || !take(")")) return fail("the name of a key and `)`");
      return make(rises ? Op::kRises : Op::kLength, {}, path);
    }
    return make(Op::kKey, {}, path);
  }

  std::string parse_path() {
    const std::size_t start = position_;
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (!is_letter(c) && !is_digit(c) && c != '.' && !(c == '[' && position_ > start) && c != ']') break;
      // The bracket of `x in [a]` closes a list, that of `a[0]` an index.
      if (c == ']' && text_.substr(start, position_ - start).find('[') == std::string_view::npos) break;
      ++position_;
    }
    return std::string(text_.substr(start, position_ - start));
  }

  TermPtr parse_text(char quote) {
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return fail("a closing quote");
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return make(Op::kText, {}, std::move(value));
  }

  TermPtr parse_number() {
    double number = 0.0;
    const auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), number);
    if (error != std::errc()) return fail("a number");
    position_ = static_cast<std::size_t>(end - text_.data());
    return make(Op::kNumber, {}, "", number);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  std::string failure_;
};

/// What a term comes to; nothing set means unknown.
struct Value {
  std::optional<double> number;
  std::optional<std::string> text;
  std::optional<bool> truth;
  bool null = false;

  bool known() const { return number || text || truth; }
};

Value of_number(double number) {
  Value value;
  value.number = number;
  return value;
}

Value of_truth(bool truth) {
  Value value;
  value.truth = truth;
  return value;
}

const Node* find_path(const Node& block, const std::string& path) { return block.at_path(path); }

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

Value evaluate(const Term& term, const Node& block);

Value arithmetic(const Term& term, const Node& block) {
  const Value left = evaluate(*term.terms[0], block);
  const Value right = evaluate(*term.terms[1], block);
  if (!left.number || !right.number) return {};
  const double a = *left.number;
  const double b = *right.number;
  if ((term.op == Op::kDivide || term.op == Op::kRemainder) && b == 0.0) return {};
  switch (term.op) {
    case Op::kAdd: return of_number(a + b);
    case Op::kSubtract: return of_number(a - b);
    case Op::kMultiply: return of_number(a * b);
    case Op::kDivide: return of_number(a / b);
    default: return of_number(std::fmod(a, b));
  }
}

Value comparison(const Term& term, const Node& block) {
  const Value left = evaluate(*term.terms[0], block);
  const Value right = evaluate(*term.terms[1], block);
  if (term.op == Op::kEqual || term.op == Op::kNotEqual) {
    const std::optional<bool> same = equal(left, right);
    return same ? of_truth(*same == (term.op == Op::kEqual)) : Value{};
  }
  if (!left.number || !right.number) return {};
  switch (term.op) {
    case Op::kLess: return of_truth(*left.number < *right.number);
    case Op::kLessEqual: return of_truth(*left.number <= *right.number);
    case Op::kGreater: return of_truth(*left.number > *right.number);
    default: return of_truth(*left.number >= *right.number);
  }
}

Value membership(const Term& term, const Node& block) {
  const Value wanted = evaluate(*term.terms[0], block);
  if (!wanted.known()) return {};
  bool found = false;
  for (std::size_t i = 1; i < term.terms.size(); ++i) {
    found = found || equal(wanted, evaluate(*term.terms[i], block)).value_or(false);
  }
  return of_truth(found == (term.op == Op::kIn));
}

Value evaluate(const Term& term, const Node& block) {
  switch (term.op) {
    case Op::kNumber: return of_number(term.number);
    case Op::kText: {
      Value value;
      value.text = term.text;
      return value;
    }
    case Op::kTrue: return of_truth(true);
    case Op::kFalse: return of_truth(false);
    case Op::kNull: return value_of(nullptr);
    case Op::kKey: return value_of(find_path(block, term.text));
    case Op::kLength: {
      const Node* node = find_path(block, term.text);
      if (node == nullptr) return {};
      if (node->is_sequence()) return of_number(static_cast<double>(node->items().size()));
      if (node->is_mapping()) return of_number(static_cast<double>(node->entries().size()));
      return node->is_string() ? of_number(static_cast<double>(node->as_string().size())) : Value{};
    }
    case Op::kRises: {
      const Node* node = find_path(block, term.text);
      if (node == nullptr || !node->is_sequence()) return {};
      const std::vector<Node>& items = node->items();
      if (!std::all_of(items.begin(), items.end(), [](const Node& item) { return item.is_number(); })) return {};
      const auto no_later = [](const Node& one, const Node& next) { return one.as_double() >= next.as_double(); };
      return of_truth(std::adjacent_find(items.begin(), items.end(), no_later) == items.end());
    }
    case Op::kNegate: {
      const Value value = evaluate(*term.terms[0], block);
      return value.number ? of_number(-*value.number) : Value{};
    }
    case Op::kNot: {
      const Value value = evaluate(*term.terms[0], block);
      return value.truth ? of_truth(!*value.truth) : Value{};
    }
    case Op::kAnd:
    case Op::kOr: {
      // One side alone can decide, known or not the other.
      const bool decisive = term.op == Op::kOr;
      const Value left = evaluate(*term.terms[0], block);
      const Value right = evaluate(*term.terms[1], block);
      if (left.truth == decisive || right.truth == decisive) return of_truth(decisive);
      return left.truth && right.truth ? of_truth(!decisive) : Value{};
    }
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder: return arithmetic(term, block);
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kGreater:
    case Op::kGreaterEqual:
    case Op::kEqual:
    case Op::kNotEqual: return comparison(term, block);
    case Op::kIn:
    case Op::kNotIn: return membership(term, block);
    case Op::kIsNull: return of_truth(evaluate(*term.terms[0], block).null);
    case Op::kIsNotNull: return of_truth(!evaluate(*term.terms[0], block).null);
  }
  return {};
}

void add_once(std::vector<std::string>& words, std::string word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
}

void collect_paths(const Term& term, std::vector<std::string>& paths) {
  if (term.op == Op::kKey || term.op == Op::kLength || term.op == Op::kRises) add_once(paths, term.text);
  for (const TermPtr& inner : term.terms) collect_paths(*inner, paths);
}

}  // namespace

std::optional<bool> Expression::decide(const Node& block) const { return evaluate(*root_, block).truth; }

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

core::Result<Expression> parse_expression(std::string_view rule) { return Parser(rule).parse(); }

std::string substitute_keys(std::string_view message, const Node& block) {
  std::string text;
  for (std::size_t i = 0; i < message.size();) {
    const std::size_t end = message[i] == '{' ? message.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      text += message[i++];
      continue;
    }
    const Node* node = find_path(block, std::string(message.substr(i + 1, end - i - 1)));
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
