#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "runner/core/suggest.h"
#include "runner/core/units.h"
#include "runner/core/utf8.h"
#include "runner/query/filter_expression.h"
#include "runner/store/database/text.h"
#include "runner/store/run_writer.h"

namespace runner::query {
namespace {

using Expression = Filter::Expression;
using Kind = Expression::Kind;
using core::Node;

constexpr int kDepthMax = 64;
constexpr std::string_view kTagPrefix = "tag:";
constexpr const char* kLiteral = "a number, a word or \"text\"";

struct Token {
  enum class Kind { kEnd, kWord, kName, kText, kNumber, kOperator, kOpen, kClose, kComma, kBad };
  Kind kind = Kind::kEnd;
  std::string text;
  double number = 0;
  std::size_t at = 0, width = 1;  ///< in bytes
};

/// Letters of any script: a metric may be named in Arabic or by an emoji.
bool is_name_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || std::string_view("_./-[]:*").find(c) != std::string_view::npos;
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
    if (c == '(' || c == ')' || c == ',') {
      token.kind = c == '(' ? Token::Kind::kOpen : c == ')' ? Token::Kind::kClose : Token::Kind::kComma;
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
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if ((token.text != "~" && next == '=') || (token.text == "=" && next == '~')) token.text += text_[at_++];
    if (token.text == "!") token.kind = Token::Kind::kBad;
  }

  void read_word(Token& token) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_char(text_[at_]) || text_[at_] == '+')) ++at_;
    token.text = text_.substr(begin, at_ - begin);
    const char* first = token.text.data() + (token.text[0] == '+' ? 1 : 0);
    const char* last = token.text.data() + token.text.size();
    const auto [end, error] = std::from_chars(first, last, token.number);
    // Beyond what a double holds is infinite or nothing, as strtod has it.
    if (error == std::errc::result_out_of_range) token.number = std::strtod(first, nullptr);
    // `inf` and `nan` are numbers too; `info` is not.
    const bool is_number = (error == std::errc() || error == std::errc::result_out_of_range) && end == last;
    token.kind = is_number ? Token::Kind::kNumber : Token::Kind::kWord;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

class Parser {
 public:
  Parser(const std::string& text, core::Diagnostics& diagnostics)
      : text_(text), lexer_(text_), diagnostics_(diagnostics) {
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
  bool is_keyword() const { return is_word("and") || is_word("or") || is_word("not") || is_word("in"); }
  void advance() { token_ = lexer_.next(); }

  core::Location place() const {
    const std::string_view before = std::string_view(text_).substr(0, token_.at);
    const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t column = core::count_code_points(before.substr(line_begin));
    const std::size_t width = core::count_code_points(std::string_view(text_).substr(token_.at, token_.width));
    return {source_, line + 1, static_cast<int>(column) + 1, static_cast<int>(std::max<std::size_t>(width, 1))};
  }

  std::unique_ptr<Expression> refuse(const std::string& message, const std::string& hint) {
    diagnostics_.error(place(), message, hint);
    return nullptr;
  }

  std::unique_ptr<Expression> wrong(const std::string& wanted) {
    const std::string there =
        token_.kind == Token::Kind::kEnd ? "it ends" : "there is `" + core::escape_for_terminal(token_.text) + "`";
    if (token_.text == "&" || token_.text == "|") {
      const bool is_and = token_.text == "&";
      return refuse("the filter needs " + wanted + " where " + there,
                    std::string("write ") + (is_and ? "`and`" : "`or`"));
    }
    return refuse("the filter needs " + wanted + " where " + there,
                  "for example: val/loss < 2 and optimizer.type == \"adamw\" and status == finished");
  }

  std::unique_ptr<Expression> parse_list(Kind kind, std::string_view word,
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

  std::unique_ptr<Expression> parse_or() { return parse_list(Kind::kOr, "or", &Parser::parse_and); }
  std::unique_ptr<Expression> parse_and() { return parse_list(Kind::kAnd, "and", &Parser::parse_not); }

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
    negation->kind = Kind::kNot;
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
    if (token_.kind == Token::Kind::kText) {
      return refuse("the filter needs a name instead of the text " + core::quote(token_.text),
                    "put a name with blanks or other characters into back quotes: `my metric` < 2");
    }
    if (is_keyword() || (token_.kind != Token::Kind::kWord && token_.kind != Token::Kind::kName))
      return wrong("a name");
    auto expression = std::make_unique<Expression>();
    expression->name = token_.text;
    expression->place = place();
    const bool is_tag = token_.text.starts_with(kTagPrefix);  // in back quotes too: `tag:two words`
    advance();
    if (is_tag) return parse_tag(std::move(expression));
    if (is_word("in")) return parse_members(std::move(expression), Kind::kIn);
    if (is_word("not")) {
      advance();
      return is_word("in") ? parse_members(std::move(expression), Kind::kNotIn) : wrong("`in` after `not`");
    }
    if (token_.kind != Token::Kind::kOperator) return expression;
    if (token_.text == "=~") return parse_pattern(std::move(expression));
    expression->kind = Kind::kCompare;
    expression->operation = token_.text == "=" ? "==" : token_.text;
    advance();
    return parse_literal(*expression) ? std::move(expression) : nullptr;
  }

  /// `tag:keep`, `tag:"two words"`.
  std::unique_ptr<Expression> parse_tag(std::unique_ptr<Expression> expression) {
    std::string tag = expression->name.substr(kTagPrefix.size());
    if (tag.empty()) {
      if (token_.kind != Token::Kind::kText) return wrong("a tag");
      tag = token_.text;
      advance();
    }
    expression->kind = Kind::kTag;
    expression->name = "tags";
    expression->literals.push_back(Node::string(tag));
    return expression;
  }

  std::unique_ptr<Expression> parse_members(std::unique_ptr<Expression> expression, Kind kind) {
    expression->kind = kind;
    expression->operation = "==";
    advance();
    if (token_.kind != Token::Kind::kOpen) return wrong("`(` and a list");
    do {
      advance();
      if (!parse_literal(*expression)) return nullptr;
    } while (token_.kind == Token::Kind::kComma);
    if (token_.kind != Token::Kind::kClose) return wrong("`,` or `)`");
    advance();
    return expression;
  }

  std::unique_ptr<Expression> parse_pattern(std::unique_ptr<Expression> expression) {
    advance();
    if (token_.kind != Token::Kind::kText && token_.kind != Token::Kind::kWord) return wrong("a \"pattern\"");
    auto pattern = core::Pattern::make(token_.text);
    if (!pattern) return refuse(pattern.failure().message, pattern.failure().hint);
    expression->kind = Kind::kMatches;
    expression->pattern = std::move(pattern).value();
    advance();
    return expression;
  }

  /// Adds what stands there to the literals; false when that was told to be wrong.
  bool parse_literal(Expression& comparison) {
    Node literal;
    switch (token_.kind) {
      case Token::Kind::kNumber:
        literal = Node::floating(token_.number);
        literal.set_written(token_.text);
        break;
      case Token::Kind::kText: literal = Node::string(token_.text); break;
      case Token::Kind::kWord:
        if (is_keyword()) return wrong(kLiteral) != nullptr;
        if (token_.text == "null") break;
        literal = token_.text == "true" || token_.text == "false" ? Node::boolean(token_.text == "true")
                                                                  : Node::string(token_.text);
        break;
      default: return wrong(kLiteral) != nullptr;
    }
    if (!fits(comparison, literal)) return false;
    comparison.literals.push_back(std::move(literal));
    advance();
    return true;
  }

  /// The possible values of some names are known: any other word is a typo.
  bool fits(const Expression& comparison, Node& literal) {
    if (literal.is_null()) return true;
    if (comparison.name == "created" || comparison.name == "ended") {
      auto date = store::date_prefix(literal.scalar_text());
      if (!date) {
        refuse("\"" + core::escape_for_terminal(literal.scalar_text()) + "\" is not a date",
               "write 2026-11-21, 2026-11-21T08:30 (UTC), today or yesterday; `age < 2h` counts from now");
        return false;
      }
      literal = Node::string(std::move(*date));
      return true;
    }
    if (const bool is_span = comparison.name == "age" || comparison.name == "duration";
        (is_span || comparison.name == "step" || comparison.name == "branch") && comparison.operation != "~") {
      const auto seconds =
          literal.is_number() ? core::Result<double>(0.0) : core::parse_duration_s(literal.scalar_text());
      if (literal.is_number() || (is_span && seconds)) return true;
      if (is_span) {
        refuse(seconds.failure().message, seconds.failure().hint);
      } else {
        refuse(comparison.name + " is a number, but " + core::quote(literal.scalar_text()) + " is not",
               "for example: " + comparison.name + " >= 100");
      }
      return false;
    }
    if (comparison.name != "status" || (comparison.operation != "==" && comparison.operation != "!=")) return true;
    const std::vector<std::string> known = store::status_texts();
    const std::string status = literal.scalar_text();
    if (std::find(known.begin(), known.end(), status) != known.end()) return true;
    const std::string near = core::closest(status, known);
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
    refuse("no run has the status \"" + core::escape_for_terminal(status) + "\"",
           near.empty() ? "it is one of " + list : "did you mean \"" + near + "\"?");
    return false;
  }

  std::string text_;
  Lexer lexer_;
  core::Diagnostics& diagnostics_;
  std::shared_ptr<const core::Source> source_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Filter::Expression> parse_filter(const std::string& text, core::Diagnostics& diagnostics) {
  return Parser(text, diagnostics).parse();
}

}  // namespace runner::query
