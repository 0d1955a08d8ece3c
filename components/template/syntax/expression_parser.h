#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "components/template/syntax/lexer.h"
#include "components/template/syntax/syntax.h"

namespace components::jinja {

/// The tokens of a template, read in turn, and the grammar of Jinja2's expressions on them. Throws Failed.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, Tree& tree) : tokens_(std::move(tokens)), tree_(tree) {}

  const Token& token() const { return tokens_[at_]; }
  const Token& next_token() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool take_operator(std::string_view name);
  bool take_name(std::string_view name);
  void expect_operator(std::string_view name);
  void expect_name(std::string_view name);
  std::string expect_identifier(std::string_view what);
  [[noreturn]] void fail_expected(std::string_view what) const;
  [[noreturn]] static void fail(std::string message, Place place);
  int symbol(const std::string& name);

  /// `a if b else c` and all that binds tighter; without_if: not the first.
  Expression expression(bool without_if = false);
  /// Values with commas between them are a tuple.
  Expression tuple(bool without_if = false, std::string_view end_name = {});
  /// A name, `a.b` where allowed, or a tuple of names. `in_brackets`: all of what the brackets hold.
  Expression target(bool attributes, std::string_view end_name = {});
  /// `| name(...)` and what may follow it.
  Expression filters(Expression subject, bool starts_inline = false);
  /// The arguments of a call, from its bracket on.
  void arguments(Expression& call);

 private:
  friend class Deeper;
  Expression alternatives();
  Expression conjunction();
  Expression negation();
  Expression comparison();
  Expression sum();
  Expression concatenation();
  Expression product();
  Expression power();
  Expression unary(bool with_filters = true);
  Expression primary();
  Expression postfix(Expression subject);
  Expression subscript(Expression subject);
  Expression subscribed(Expression subject, Place place);
  Expression filter(Expression subject);
  Expression test(Expression subject);
  Expression mapping();
  Expression list();
  Expression number();
  Expression target_item(bool attributes);
  std::string dotted_name(std::string_view what);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Tree& tree_;
  std::unordered_map<std::string, int> symbols_;

 protected:
  int depth_ = 0;
};

/// Bounds how deeply a template may be nested.
class Deeper {
 public:
  explicit Deeper(ExpressionParser& parser);
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  ExpressionParser& parser_;
};

}  // namespace components::jinja
