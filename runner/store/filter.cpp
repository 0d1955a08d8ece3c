#include "runner/store/filter.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "runner/core/units.h"

namespace runner::store {

struct Filter::Expression {
  enum class Kind { kOr, kAnd, kNot, kCompare, kHas };
  Kind kind = Kind::kHas;
  std::vector<std::unique_ptr<Expression>> parts;  // of or, and, not
  std::string name;                                // of compare, has
  core::Place place;
  std::string operation;
  core::Node literal;
};

namespace {

using Expression = Filter::Expression;
using core::Node;

constexpr int kDepthMax = 64;

struct Token {
  enum class Kind { kEnd, kWord, kName, kText, kNumber, kOperator, kOpen, kClose, kBad };
  Kind kind = Kind::kEnd;
  std::string text;
  double number = 0;
  std::size_t at = 0, width = 1;
};

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_./-[]").find(c) != std::string_view::npos;
}

class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}

  Token next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    Token token;
    token.at = at_;
    if (at_ == text_.size()) return token;
    read(token);
    token.width = std::max<std::size_t>(at_ - token.at, 1);
    return token;
  }

 private:
  void read(Token& token) {
    const char c = text_[at_];
    if (c == '(' || c == ')') {
      token.kind = c == '(' ? Token::Kind::kOpen : Token::Kind::kClose;
      token.text = text_[at_++];
    } else if (c == '"' || c == '\'' || c == '`') {
      read_quoted(token, c);
    } else if (std::string_view("=!<>~").find(c) != std::string_view::npos) {
      read_operator(token);
    } else if (is_name_char(c) || c == '+') {
      read_word(token);
    } else {
      token.kind = Token::Kind::kBad;
      token.text = text_[at_++];
    }
  }

  void read_quoted(Token& token, char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) {
      token.kind = Token::Kind::kBad;
      token.text = text_.substr(at_);
      at_ = text_.size();
      return;
    }
    token.kind = quote == '`' ? Token::Kind::kName : Token::Kind::kText;
    token.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
  }

  void read_operator(Token& token) {
    token.kind = Token::Kind::kOperator;
    token.text = text_[at_++];
    if (token.text != "~" && at_ < text_.size() && text_[at_] == '=') token.text += text_[at_++];
    if (token.text == "!") token.kind = Token::Kind::kBad;
  }

  void read_word(Token& token) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_char(text_[at_]) || text_[at_] == '+')) ++at_;
    token.text = text_.substr(begin, at_ - begin);
    const char* first = token.text.data() + (token.text[0] == '+' ? 1 : 0);
    const char* last = token.text.data() + token.text.size();
    const auto [end, error] = std::from_chars(first, last, token.number);
    // `inf` and `nan` are numbers too; `info` is not.
    token.kind = error == std::errc() && end == last ? Token::Kind::kNumber : Token::Kind::kWord;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  Parser(const std::string& text, core::Diagnostics& diagnostics) : lexer_(text), diagnostics_(diagnostics) {
    source_ = std::make_shared<core::Source>(core::Source{"--filter", text, core::Source::Kind::kFlag});
    token_ = lexer_.next();
  }

  std::unique_ptr<Expression> parse() {
    auto root = parse_or();
    if (root && token_.kind != Token::Kind::kEnd) return wrong("`and`, `or` or the end");
    return root;
  }

 private:
  bool is_word(std::string_view word) const { return token_.kind == Token::Kind::kWord && token_.text == word; }
  bool is_keyword() const { return is_word("and") || is_word("or") || is_word("not"); }
  void advance() { token_ = lexer_.next(); }

  core::Place place() const { return {source_, 1, static_cast<int>(token_.at) + 1, static_cast<int>(token_.width)}; }

  std::unique_ptr<Expression> wrong(const std::string& wanted) {
    const std::string there = token_.kind == Token::Kind::kEnd ? "it ends" : "there is `" + token_.text + "`";
    diagnostics_.error(place(), "the filter needs " + wanted + " where " + there,
                       "for example: val/loss < 2 and optimizer.type == \"adamw\" and status == finished");
    return nullptr;
  }

  std::unique_ptr<Expression> parse_list(Expression::Kind kind, std::string_view word,
                                         std::unique_ptr<Expression> (Parser::*part)()) {
    auto first = (this->*part)();
    if (!first || !is_word(word)) return first;
    auto list = std::make_unique<Expression>();
    list->kind = kind;
    list->parts.push_back(std::move(first));
    while (is_word(word)) {
      advance();
      auto next = (this->*part)();
      if (!next) return nullptr;
      list->parts.push_back(std::move(next));
    }
    return list;
  }

  std::unique_ptr<Expression> parse_or() { return parse_list(Expression::Kind::kOr, "or", &Parser::parse_and); }
  std::unique_ptr<Expression> parse_and() { return parse_list(Expression::Kind::kAnd, "and", &Parser::parse_not); }

  std::unique_ptr<Expression> parse_not() {
    if (++depth_ > kDepthMax) return wrong("at most " + std::to_string(kDepthMax) + " levels of nesting");
    auto expression = is_word("not") ? parse_negation() : parse_atom();
    --depth_;
    return expression;
  }

  std::unique_ptr<Expression> parse_negation() {
    advance();
    auto inner = parse_not();
    if (!inner) return nullptr;
    auto negation = std::make_unique<Expression>();
    negation->kind = Expression::Kind::kNot;
    negation->parts.push_back(std::move(inner));
    return negation;
  }

  std::unique_ptr<Expression> parse_atom() {
    if (token_.kind == Token::Kind::kOpen) {
      advance();
      auto inner = parse_or();
      if (!inner) return nullptr;
      if (token_.kind != Token::Kind::kClose) return wrong("`)`");
      advance();
      return inner;
    }
    if (is_keyword() || (token_.kind != Token::Kind::kWord && token_.kind != Token::Kind::kName))
      return wrong("a name");
    auto expression = std::make_unique<Expression>();
    expression->name = token_.text;
    expression->place = place();
    advance();
    if (token_.kind != Token::Kind::kOperator) return expression;
    expression->kind = Expression::Kind::kCompare;
    expression->operation = token_.text == "=" ? "==" : token_.text == "~=" ? "~" : token_.text;
    advance();
    return parse_literal(std::move(expression));
  }

  std::unique_ptr<Expression> parse_literal(std::unique_ptr<Expression> comparison) {
    switch (token_.kind) {
      case Token::Kind::kNumber:
        comparison->literal = Node::floating(token_.number);
        comparison->literal.set_written(token_.text);
        break;
      case Token::Kind::kText: comparison->literal = Node::string(token_.text); break;
      case Token::Kind::kWord:
        if (is_keyword()) return wrong("a number, a word or \"text\"");
        if (token_.text == "null") break;
        comparison->literal = token_.text == "true" || token_.text == "false" ? Node::boolean(token_.text == "true")
                                                                              : Node::string(token_.text);
        break;
      default: return wrong("a number, a word or \"text\"");
    }
    advance();
    return comparison;
  }

  Lexer lexer_;
  core::Diagnostics& diagnostics_;
  std::shared_ptr<const core::Source> source_;
  Token token_;
  int depth_ = 0;
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

template <typename T>
bool ordered(const std::string& operation, const T& left, const T& right) {
  if (operation == "==") return left == right;
  if (operation == "!=") return left != right;
  if (operation == "<") return left < right;
  if (operation == "<=") return left <= right;
  if (operation == ">") return left > right;
  return left >= right;
}

bool compare(const std::optional<Node>& value, const std::string& operation, const Node& literal) {
  if (literal.is_null()) return operation == "==" ? !value : operation == "!=" && value.has_value();
  if (!value) return false;
  if (operation == "~") {
    return lower(value->scalar_text()).find(lower(literal.scalar_text())) != std::string::npos;
  }
  if (value->is_number() && literal.is_string()) {  // `age < 2h`
    const auto seconds = core::parse_duration_s(literal.as_string());
    return seconds ? ordered(operation, value->as_double(), seconds.value()) : operation == "!=";
  }
  if (value->is_number() && literal.is_number()) return ordered(operation, value->as_double(), literal.as_double());
  if (value->is_bool() && literal.is_bool()) return ordered(operation, value->as_bool(), literal.as_bool());
  return ordered(operation, value->scalar_text(), literal.scalar_text());
}

bool is_true(const std::optional<Node>& value) {
  if (!value) return false;
  if (value->is_bool()) return value->as_bool();
  if (value->is_number()) return value->as_double() != 0;
  return !value->scalar_text().empty();
}

bool accepts(const Expression& expression, const RunSummary& run, const core::Clock& clock) {
  const auto holds = [&](const auto& part) { return accepts(*part, run, clock); };
  const auto& parts = expression.parts;
  switch (expression.kind) {
    case Expression::Kind::kOr: return std::any_of(parts.begin(), parts.end(), holds);
    case Expression::Kind::kAnd: return std::all_of(parts.begin(), parts.end(), holds);
    case Expression::Kind::kNot: return !holds(parts.front());
    case Expression::Kind::kHas: return is_true(run_value(run, expression.name, clock));
    case Expression::Kind::kCompare:
      return compare(run_value(run, expression.name, clock), expression.operation, expression.literal);
  }
  return false;
}

void for_each_name(const Expression& expression, const std::function<void(const Expression&)>& visit) {
  if (!expression.name.empty()) visit(expression);
  for (const auto& part : expression.parts) for_each_name(*part, visit);
}

}  // namespace

Filter::Filter() = default;
Filter::~Filter() = default;
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;

std::optional<Filter> Filter::parse(const std::string& text, core::Diagnostics& diagnostics) {
  Filter filter;
  filter.root_ = Parser(text, diagnostics).parse();
  if (!filter.root_) return std::nullopt;
  return filter;
}

std::vector<std::string> Filter::recipe_names(const std::vector<RunSummary>& runs, const core::Clock& clock) const {
  std::vector<std::string> names;
  for_each_name(*root_, [&](const Expression& leaf) {
    if (store::needs_recipe(runs, leaf.name, clock)) names.push_back(leaf.name);
  });
  return names;
}

void Filter::check_names(const std::vector<RunSummary>& runs, const core::Clock& clock,
                         core::Diagnostics& diagnostics) const {
  for_each_name(*root_, [&](const Expression& leaf) { check_name(leaf.name, leaf.place, runs, clock, diagnostics); });
}

bool Filter::accepts(const RunSummary& run, const core::Clock& clock) const {
  return store::accepts(*root_, run, clock);
}

}  // namespace runner::store
