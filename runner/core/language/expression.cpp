#include "runner/core/language/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

using Op = Term::Op;
using TermPtr = std::shared_ptr<const Term>;

constexpr int kDepthMax = 64;    // parentheses within each other
constexpr int kSignsMax = 1000;  // of arithmetic: each may be a level of the tree
constexpr std::string_view kTagPrefix = "tag:";

struct Token {
  enum class Kind { kEnd, kWord, kName, kText, kNumber, kOperator, kSymbol, kOpenQuote, kBad };
  Kind kind = Kind::kEnd;
  std::string text;
  double number = 0;
  std::size_t at = 0, width = 1;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_one_of(char c, std::string_view signs) { return signs.find(c) != std::string_view::npos; }

/// Letters of any script: a metric may be named in Arabic or by an emoji.
bool is_metric_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || is_one_of(c, "_./-[]:*");
}

class Lexer {
 public:
  Lexer(std::string_view text, Names names) : text_(text), metrics_(names == Names::kMetrics) {}

  Token next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    Token token;
    token.at = at_;
    if (at_ == text_.size()) return token;
    read(token);
    token.width = std::max<std::size_t>(at_ - token.at, 1);
    return token;
  }

  /// The token at `at` once more, where a bracket opens a list. Until end_list() a bracket without its pair ends it.
  Token begin_list(std::size_t at) {
    in_list_ = true;
    at_ = at + 1;
    return {Token::Kind::kSymbol, "[", 0, at, 1};
  }
  void end_list() { in_list_ = false; }

 private:
  void read(Token& token) {
    const char c = text_[at_];
    if (is_one_of(c, "(),") || (is_one_of(c, "[]") && (!metrics_ || (c == ']' && in_list_)))) {
      token.kind = Token::Kind::kSymbol;
      token.text = text_[at_++];
    } else if (is_one_of(c, "\"'`")) {
      read_quoted(token, c);
    } else if (is_one_of(c, metrics_ ? "=!<>~" : "=!<>~+-*/%")) {
      read_operator(token);
    } else if (metrics_ ? is_metric_char(c) || c == '+' : is_letter(c)) {
      read_word(token);
    } else if (!metrics_ && (is_digit(c) || c == '.')) {
      read_number(token);
    } else {
      token.kind = Token::Kind::kBad;
      token.text = text_[at_++];
    }
  }

  void read_quoted(Token& token, char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      token.kind = Token::Kind::kOpenQuote;
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
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    const bool doubles = (is_one_of(token.text[0], "=!<>") && next == '=') || (token.text == "=" && next == '~');
    if (doubles) token.text += text_[at_++];
    if (token.text == "!") token.kind = Token::Kind::kBad;
  }

  /// A word of a filter can be a number, too, or an amount with its unit; `inf` and `nan` are numbers, `info` is none.
  void read_word(Token& token) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && goes_on(begin)) ++at_;
    token.kind = Token::Kind::kWord;
    token.text = text_.substr(begin, at_ - begin);
    if (!metrics_) return;
    const char* first = token.text.data() + (token.text[0] == '+' ? 1 : 0);
    const char* last = token.text.data() + token.text.size();
    const auto [end, error] = std::from_chars(first, last, token.number);
    // Beyond what a double holds is infinite or nothing, as strtod has it.
    if (error == std::errc::result_out_of_range) token.number = std::strtod(first, nullptr);
    const bool is_number = error == std::errc() || error == std::errc::result_out_of_range;
    if (is_number && end == last) token.kind = Token::Kind::kNumber;
  }

  bool goes_on(std::size_t begin) const {
    const char c = text_[at_];
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (c == ']' && (!metrics_ || in_list_))
      return std::count(word.begin(), word.end(), '[') > std::count(word.begin(), word.end(), ']');
    if (metrics_) return is_metric_char(c) || c == '+';
    return is_letter(c) || is_digit(c) || c == '.' || (c == '[' && at_ > begin);
  }

  void read_number(Token& token) {
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), token.number);
    token.kind = error == std::errc() ? Token::Kind::kNumber : Token::Kind::kBad;
    const std::size_t length = error == std::errc() ? static_cast<std::size_t>(end - first) : 1;
    token.text = text_.substr(at_, length);
    at_ += length;
  }

  std::string_view text_;
  bool metrics_;
  std::size_t at_ = 0;
  bool in_list_ = false;
};

/// Recursive descent, one function a level of binding; the first problem stops it, and null goes up.
class Parser {
 public:
  Parser(std::string_view text, Names names, ExpressionProblem& problem)
      : text_(text), metrics_(names == Names::kMetrics), lexer_(text, names), problem_(problem) {
    advance();
  }

  TermPtr parse() {
    TermPtr root = parse_or();
    if (root && token_.kind != Token::Kind::kEnd)
      return fail(metrics_ ? "`and`, `or` or the end" : "an operator or the end");
    return root;
  }

 private:
  using Part = TermPtr (Parser::*)();

  bool is(Token::Kind kind, std::string_view text) const { return token_.kind == kind && token_.text == text; }
  bool is_word(std::string_view word) const { return is(Token::Kind::kWord, word); }
  bool is_symbol(std::string_view symbol) const { return is(Token::Kind::kSymbol, symbol); }
  bool is_operator(std::string_view sign) const { return is(Token::Kind::kOperator, sign); }
  bool is_keyword() const {
    return is_word("and") || is_word("or") || is_word("not") || is_word("in") || (!metrics_ && is_word("is"));
  }

  void advance() { token_ = lexer_.next(); }
  bool take_word(std::string_view word) { return is_word(word) && (advance(), true); }
  bool take_symbol(std::string_view symbol) { return is_symbol(symbol) && (advance(), true); }

  TermPtr fail(const std::string& wanted) {
    problem_ = {token_.at, token_.width, wanted, token_.text, "", ""};
    return nullptr;
  }
  TermPtr refuse(const std::string& message, const std::string& hint) {
    problem_ = {token_.at, token_.width, "", token_.text, message, hint};
    return nullptr;
  }

  /// Of the token that was read last, or of nothing.
  static std::shared_ptr<Term> make(Op op, const Token& token) {
    auto term = std::make_shared<Term>();
    term->op = op;
    term->number = token.number;
    term->text = token.text;
    term->at = token.at;
    term->width = token.width;
    return term;
  }
  static TermPtr make(Op op, std::vector<TermPtr> terms) {
    auto term = std::make_shared<Term>();
    term->op = op;
    term->at = terms.front()->at;
    term->width = terms.front()->width;
    term->terms = std::move(terms);
    return term;
  }
  TermPtr taken(Op op) {
    TermPtr term = make(op, token_);
    advance();
    return term;
  }

  TermPtr parse_list_of(Op op, std::string_view word, Part part) {
    std::vector<TermPtr> parts;
    do {
      parts.push_back((this->*part)());
      if (!parts.back()) return nullptr;
    } while (take_word(word));
    return parts.size() == 1 ? parts.front() : make(op, std::move(parts));
  }

  TermPtr parse_or() {
    if (++depth_ > kDepthMax) return fail("at most " + std::to_string(kDepthMax) + " levels of nesting");
    TermPtr term = parse_list_of(Op::kOr, "or", &Parser::parse_and);
    --depth_;
    return term;
  }
  TermPtr parse_and() { return parse_list_of(Op::kAnd, "and", &Parser::parse_not); }

  TermPtr parse_not() {
    bool negated = false;
    while (take_word("not")) negated = !negated;
    TermPtr term = metrics_ ? parse_metric() : parse_comparison(parse_sum());
    return term && negated ? make(Op::kNot, {std::move(term)}) : term;
  }

  TermPtr parse_inner() {
    advance();
    TermPtr inner = parse_or();
    if (inner && !take_symbol(")")) return fail("`)`");
    return inner;
  }

  /// What stands on the left in a filter: a name, or an expression in parentheses.
  TermPtr parse_metric() {
    if (is_symbol("(")) return parse_inner();
    if (token_.kind == Token::Kind::kText) {
      return refuse("the filter needs a name instead of the text " + quote(token_.text),
                    "put a name with blanks or other characters into back quotes: `my metric` < 2");
    }
    if (is_keyword() || (token_.kind != Token::Kind::kWord && token_.kind != Token::Kind::kName)) return fail("a name");
    if (token_.text.starts_with(kTagPrefix)) return parse_tag();  // in back quotes too: `tag:two words`
    return parse_comparison(taken(Op::kName));
  }

  /// `tag:keep`, `tag:"two words"`.
  TermPtr parse_tag() {
    auto term = make(Op::kTag, token_);
    term->text = term->text.substr(kTagPrefix.size());
    advance();
    if (!term->text.empty()) return term;
    if (token_.kind != Token::Kind::kText) return fail("a tag");
    term->text = token_.text;
    advance();
    return term;
  }

  TermPtr parse_comparison(TermPtr left) {
    if (!left) return nullptr;
    if (take_word("is")) {
      const bool negated = take_word("not");
      if (!take_word("null")) return fail("`null`");
      return make(negated ? Op::kIsNotNull : Op::kIsNull, {std::move(left)});
    }
    if (take_word("in")) return parse_members(Op::kIn, std::move(left));
    if (take_word("not")) {
      if (!take_word("in")) return fail(metrics_ ? "`in` after `not`" : "`in`");
      return parse_members(Op::kNotIn, std::move(left));
    }
    if (is_operator("=~")) return parse_pattern(std::move(left));
    static constexpr std::pair<std::string_view, Op> kSigns[] = {
        {"<", Op::kLess},   {"<=", Op::kLessEqual}, {">", Op::kGreater}, {">=", Op::kGreaterEqual},
        {"==", Op::kEqual}, {"!=", Op::kNotEqual},  {"~", Op::kContains}};
    for (const auto& [sign, op] : kSigns) {
      if (!is_operator(sign) && !(metrics_ && op == Op::kEqual && is_operator("="))) continue;
      advance();
      return compared(op, std::move(left), parse_value());
    }
    return left;
  }

  /// `x == null` is `x is null`.
  static TermPtr compared(Op op, TermPtr left, TermPtr right) {
    if (!right) return nullptr;
    const bool asks_null = op == Op::kEqual || op == Op::kNotEqual;
    if (asks_null && (left->op == Op::kNull || right->op == Op::kNull)) {
      TermPtr asked = right->op == Op::kNull ? std::move(left) : std::move(right);
      return make(op == Op::kEqual ? Op::kIsNull : Op::kIsNotNull, {std::move(asked)});
    }
    return make(op, {std::move(left), std::move(right)});
  }

  /// `(a, b)` or `[a, b]`.
  TermPtr parse_members(Op op, TermPtr left) {
    std::vector<TermPtr> terms = {std::move(left)};
    if (token_.at < text_.size() && text_[token_.at] == '[') token_ = lexer_.begin_list(token_.at);
    const bool brackets = is_symbol("[");
    const std::string_view close = brackets ? "]" : ")";
    if (!brackets && !is_symbol("(")) return fail(metrics_ ? "`(` and a list" : "`[`");
    advance();
    while (terms.size() > 1 || !is_symbol(close)) {
      terms.push_back(parse_value());
      if (!terms.back()) return nullptr;
      if (!take_symbol(",")) break;
    }
    if (brackets) lexer_.end_list();
    if (!take_symbol(close)) return fail(brackets ? "`,` or `]`" : "`,` or `)`");
    return make(op, std::move(terms));
  }

  TermPtr parse_pattern(TermPtr left) {
    advance();
    if (token_.kind != Token::Kind::kText && (!metrics_ || token_.kind != Token::Kind::kWord))
      return fail("a \"pattern\"");
    auto pattern = Pattern::make(token_.text);
    if (!pattern) return refuse(pattern.failure().message, pattern.failure().hint);
    auto term = make(Op::kMatches, token_);
    term->pattern = std::move(pattern).value();
    term->terms.push_back(std::move(left));
    advance();
    return term;
  }

  TermPtr parse_value() { return metrics_ ? parse_literal() : parse_sum(); }

  TermPtr parse_literal() {
    switch (token_.kind) {
      case Token::Kind::kNumber: return taken(Op::kNumber);
      case Token::Kind::kText: return taken(Op::kText);
      case Token::Kind::kWord:
        if (!is_keyword()) return taken(constant().value_or(Op::kText));
        [[fallthrough]];
      default: return fail("a number, a word or \"text\"");
    }
  }

  std::optional<Op> constant() const {
    if (is_word("true")) return Op::kTrue;
    if (is_word("false")) return Op::kFalse;
    if (is_word("null")) return Op::kNull;
    return std::nullopt;
  }

  using Sign = std::pair<std::string_view, Op>;
  TermPtr parse_chain(std::initializer_list<Sign> signs, Part part) {
    TermPtr left = (this->*part)();
    while (left) {
      const auto sign =
          std::find_if(signs.begin(), signs.end(), [this](const Sign& one) { return is_operator(one.first); });
      if (sign == signs.end()) break;
      if (++signs_ > kSignsMax) return fail("at most " + std::to_string(kSignsMax) + " signs of arithmetic");
      advance();
      TermPtr right = (this->*part)();
      if (!right) return nullptr;
      left = make(sign->second, {std::move(left), std::move(right)});
    }
    return left;
  }
  TermPtr parse_sum() { return parse_chain({{"+", Op::kAdd}, {"-", Op::kSubtract}}, &Parser::parse_product); }
  TermPtr parse_product() {
    return parse_chain({{"*", Op::kMultiply}, {"/", Op::kDivide}, {"%", Op::kRemainder}}, &Parser::parse_factor);
  }

  TermPtr parse_factor() {
    bool negative = false;
    for (; is_operator("-"); advance()) negative = !negative;
    TermPtr term = parse_atom();
    return term && negative ? make(Op::kNegate, {std::move(term)}) : term;
  }

  TermPtr parse_atom() {
    if (is_symbol("(")) return parse_inner();
    switch (token_.kind) {
      case Token::Kind::kNumber: return taken(Op::kNumber);
      case Token::Kind::kText: return taken(Op::kText);
      case Token::Kind::kName: return taken(Op::kName);
      case Token::Kind::kOpenQuote: return fail("a closing quote");
      case Token::Kind::kWord: break;
      default: return fail("a value");
    }
    if (is_keyword()) return fail("a value");
    if (const auto op = constant()) return taken(*op);
    const bool is_length = is_word("len"), is_rises = is_word("rises");
    TermPtr name = taken(Op::kName);
    if (!(is_length || is_rises) || !take_symbol("(")) return name;
    if (token_.kind != Token::Kind::kWord) return fail("the name of a key and `)`");
    TermPtr function = taken(is_length ? Op::kLength : Op::kRises);
    return take_symbol(")") ? function : fail("the name of a key and `)`");
  }

  std::string_view text_;
  bool metrics_;
  Lexer lexer_;
  ExpressionProblem& problem_;
  Token token_;
  int depth_ = 0, signs_ = 0;
};

}  // namespace

TermPtr read_expression(std::string_view text, Names names, ExpressionProblem& problem) {
  return Parser(text, names, problem).parse();
}

std::optional<bool> decide(const Term& term, const Evaluator& values) {
  if (term.op == Op::kNot) {
    const auto inner = decide(*term.terms.front(), values);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (term.op != Op::kAnd && term.op != Op::kOr) return values.truth(term);
  const bool decisive = term.op == Op::kOr;
  bool known = true;
  for (const auto& part : term.terms) {
    const auto truth = decide(*part, values);
    if (truth == decisive) return decisive;
    known = known && truth.has_value();
  }
  return known ? std::optional(!decisive) : std::nullopt;
}

}  // namespace runner::core
