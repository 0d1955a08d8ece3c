#include "components/template/syntax/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

constexpr int kNestingMax = 100;
constexpr std::uint32_t kExpressionDepthMax = 200;

Expression make(Op op, Place place) {
  Expression made;
  made.op = op;
  made.place = place;
  return made;
}

Expression constant(Value value, Place place) {
  Expression made = make(Op::kConstant, place);
  made.value = std::move(value);
  return made;
}

/// Takes its children into account: a chain of operators is as deep as it is long, though no bracket nests it.
void measure(Expression& made) {
  for (const Expression& child : made.children) made.depth = std::max(made.depth, child.depth + 1);
  if (made.depth > kExpressionDepthMax) {
    ExpressionParser::fail("the expression has more than " + std::to_string(kExpressionDepthMax) +
                               " operators on each other (limit depth)",
                           made.place);
  }
}

template <typename... Parts>
Expression make(Op op, Place place, Parts... parts) {
  Expression made = make(op, place);
  made.children.reserve(sizeof...(parts));
  (made.children.push_back(std::move(parts)), ...);
  measure(made);
  return made;
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kData: return "text";
    case Token::Kind::kVariableBegin: return "\"{{\"";
    case Token::Kind::kVariableEnd: return "\"}}\"";
    case Token::Kind::kBlockBegin: return "\"{%\"";
    case Token::Kind::kBlockEnd: return "\"%}\"";
    case Token::Kind::kString: return "the text " + runner::core::quote(token.text);
    case Token::Kind::kEnd: return "the end of the template";
    default: return runner::core::quote(token.text);
  }
}

}  // namespace

Deeper::Deeper(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kNestingMax) {
    --parser_.depth_;
    ExpressionParser::fail("the template is nested more than " + std::to_string(kNestingMax) + " deep (limit depth)",
                           parser_.token().place);
  }
}

bool ExpressionParser::take_operator(std::string_view name) {
  if (!token().is_operator(name)) return false;
  take();
  return true;
}

bool ExpressionParser::take_name(std::string_view name) {
  if (!token().is_name(name)) return false;
  take();
  return true;
}

void ExpressionParser::expect_operator(std::string_view name) {
  if (!take_operator(name)) fail_expected("\"" + std::string(name) + "\"");
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!take_name(name)) fail_expected("\"" + std::string(name) + "\"");
}

std::string ExpressionParser::expect_identifier(std::string_view what) {
  if (token().kind != Token::Kind::kName) fail_expected(what);
  return take().text;
}

void ExpressionParser::fail_expected(std::string_view what) const {
  fail("expected " + std::string(what) + ", got " + shown(token()), token().place);
}

void ExpressionParser::fail(std::string message, Place place) { throw Failed{std::move(message), place}; }

int ExpressionParser::symbol(const std::string& name) {
  const auto [found, is_new] = symbols_.emplace(name, static_cast<int>(tree_.symbols.size()));
  if (is_new) {
    tree_.symbols.push_back(name);
    tree_.absent.push_back(Value::undefined("'" + name + "' is undefined"));
  }
  return found->second;
}

Expression ExpressionParser::expression(bool without_if) {
  const Deeper deeper(*this);
  Expression made = alternatives();
  while (!without_if && token().is_name("if")) {
    const Place place = take().place;
    Expression condition = alternatives();
    Expression otherwise = take_name("else")
                               ? expression()
                               : constant(Value::undefined("the inline if-expression evaluated to false and no else "
                                                           "section was defined"),
                                          place);
    made = make(Op::kIf, place, std::move(condition), std::move(made), std::move(otherwise));
  }
  return made;
}

Expression ExpressionParser::alternatives() {
  Expression left = conjunction();
  while (token().is_name("or")) {
    const Place place = take().place;
    left = make(Op::kOr, place, std::move(left), conjunction());
  }
  return left;
}

Expression ExpressionParser::conjunction() {
  Expression left = negation();
  while (token().is_name("and")) {
    const Place place = take().place;
    left = make(Op::kAnd, place, std::move(left), negation());
  }
  return left;
}

Expression ExpressionParser::negation() {
  if (!token().is_name("not")) return comparison();
  const Deeper deeper(*this);
  const Place place = take().place;
  return make(Op::kNot, place, negation());
}

Expression ExpressionParser::comparison() {
  static constexpr std::array<std::string_view, 6> kNames = {"==", "!=", "<", "<=", ">", ">="};
  const Place place = token().place;
  Expression first = sum();
  std::vector<Comparison> comparisons;
  std::vector<Expression> others;
  while (true) {
    const auto found = std::find_if(kNames.begin(), kNames.end(), [&](auto name) { return token().is_operator(name); });
    if (found != kNames.end()) {
      take();
      comparisons.push_back(static_cast<Comparison>(found - kNames.begin()));
    } else if (take_name("in")) {
      comparisons.push_back(Comparison::kIn);
    } else if (token().is_name("not") && next_token().is_name("in")) {
      take();
      take();
      comparisons.push_back(Comparison::kNotIn);
    } else {
      break;
    }
    others.push_back(sum());
  }
  if (others.empty()) return first;
  Expression made = make(Op::kCompare, place, std::move(first));
  for (Expression& other : others) made.children.push_back(std::move(other));
  made.comparisons = std::move(comparisons);
  measure(made);
  return made;
}

Expression ExpressionParser::sum() {
  Expression left = concatenation();
  while (token().is_operator("+") || token().is_operator("-")) {
    const Token sign = take();
    left = make(sign.text == "+" ? Op::kAdd : Op::kSubtract, sign.place, std::move(left), concatenation());
  }
  return left;
}

Expression ExpressionParser::concatenation() {
  Expression first = product();
  if (!token().is_operator("~")) return first;
  Expression made = make(Op::kConcat, token().place, std::move(first));
  while (take_operator("~")) made.children.push_back(product());
  measure(made);
  return made;
}

Expression ExpressionParser::product() {
  Expression left = power();
  while (true) {
    const Op op = token().is_operator("*")    ? Op::kMultiply
                  : token().is_operator("/")  ? Op::kDivide
                  : token().is_operator("//") ? Op::kFloorDivide
                  : token().is_operator("%")  ? Op::kModulo
                                              : Op::kConstant;
    if (op == Op::kConstant) return left;
    const Place place = take().place;
    left = make(op, place, std::move(left), power());
  }
}

Expression ExpressionParser::power() {
  Expression left = unary();
  while (token().is_operator("**")) {
    const Place place = take().place;
    left = make(Op::kPower, place, std::move(left), unary());
  }
  return left;
}

Expression ExpressionParser::unary(bool with_filters) {
  const Deeper deeper(*this);
  const Place place = token().place;
  Expression made;
  if (take_operator("-")) {
    made = make(Op::kNegative, place, unary(false));
  } else if (take_operator("+")) {
    made = make(Op::kPositive, place, unary(false));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filters ? filters(std::move(made)) : made;
}

Expression ExpressionParser::primary() {
  const Place place = token().place;
  switch (token().kind) {
    case Token::Kind::kName: {
      const std::string name = take().text;
      if (name == "true" || name == "True") return constant(Value::boolean(true), place);
      if (name == "false" || name == "False") return constant(Value::boolean(false), place);
      if (name == "none" || name == "None") return constant(Value::none(), place);
      Expression made = make(Op::kName, place);
      made.symbol = symbol(name);
      return made;
    }
    case Token::Kind::kString: {
      std::string text = take().text;
      while (token().kind == Token::Kind::kString) text += take().text;
      return constant(Value::text(std::move(text)), place);
    }
    case Token::Kind::kInteger:
    case Token::Kind::kFloat: return number();
    default: break;
  }
  if (take_operator("(")) {
    if (take_operator(")")) return make(Op::kTuple, place);
    Expression made = tuple();
    expect_operator(")");
    return made;
  }
  if (token().is_operator("[")) return list();
  if (token().is_operator("{")) return mapping();
  fail_expected("a value");
}

Expression ExpressionParser::number() {
  const Token written = take();
  const std::string& text = written.text;
  if (written.kind == Token::Kind::kFloat) {
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return constant(Value::floating(value), written.place);
  }
  const bool has_base = text.size() > 2 && text[0] == '0';
  const char letter = has_base ? static_cast<char>(text[1] | 0x20) : '\0';
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data() + (has_base && letter > '9' ? 2 : 0), text.data() + text.size(), value,
                                    letter == 'x'   ? 16
                                    : letter == 'o' ? 8
                                    : letter == 'b' ? 2
                                                    : 10);
  if (read.ec != std::errc()) fail("the number " + text + " does not fit into 64 bits", written.place);
  return constant(Value::integer(value), written.place);
}

Expression ExpressionParser::list() {
  Expression made = make(Op::kList, take().place);
  while (!token().is_operator("]")) {
    if (!made.children.empty()) {
      if (!take_operator(",")) fail_expected("\",\" or \"]\"");
      if (token().is_operator("]")) break;
    }
    made.children.push_back(expression());
  }
  take();
  measure(made);
  return made;
}

Expression ExpressionParser::mapping() {
  Expression made = make(Op::kMapping, take().place);
  while (!token().is_operator("}")) {
    if (!made.children.empty()) {
      if (!take_operator(",")) fail_expected("\",\" or \"}\"");
      if (token().is_operator("}")) break;
    }
    made.children.push_back(expression());
    expect_operator(":");
    made.children.push_back(expression());
  }
  take();
  measure(made);
  return made;
}

Expression ExpressionParser::tuple(bool without_if, std::string_view end_name) {
  const Place place = token().place;
  const auto at_end = [&] {
    return token().kind == Token::Kind::kVariableEnd || token().kind == Token::Kind::kBlockEnd ||
           token().is_operator(")") || (!end_name.empty() && token().is_name(end_name));
  };
  Expression first = expression(without_if);
  if (!token().is_operator(",")) return first;
  Expression made = make(Op::kTuple, place, std::move(first));
  while (take_operator(",") && !at_end()) made.children.push_back(expression(without_if));
  measure(made);
  return made;
}

Expression ExpressionParser::target_item(bool attributes) {
  const Deeper deeper(*this);
  const Place place = token().place;
  if (take_operator("(")) {
    Expression made = target(attributes);
    expect_operator(")");
    return made;
  }
  Expression made = make(Op::kName, place);
  const std::string name = expect_identifier("the name of a variable");
  if (name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None") {
    fail("\"" + name + "\" cannot be assigned to", place);
  }
  made.symbol = symbol(name);
  if (attributes && take_operator(".")) {
    made = make(Op::kAttribute, place, std::move(made));
    made.value = Value::text(expect_identifier("the name of an attribute"));
  }
  return made;
}

Expression ExpressionParser::target(bool attributes, std::string_view end_name) {
  const Place place = token().place;
  Expression first = target_item(attributes);
  if (!token().is_operator(",")) return first;
  Expression made = make(Op::kTuple, place, std::move(first));
  while (take_operator(",")) {
    if (token().is_operator(")") || token().is_operator("=") || (!end_name.empty() && token().is_name(end_name))) break;
    made.children.push_back(target_item(attributes));
  }
  return made;
}

Expression ExpressionParser::postfix(Expression subject) {
  while (true) {
    if (token().is_operator(".") || token().is_operator("[")) {
      subject = subscript(std::move(subject));
    } else if (token().is_operator("(")) {
      subject = make(Op::kCall, token().place, std::move(subject));
      arguments(subject);
    } else {
      return subject;
    }
  }
}

Expression ExpressionParser::subscript(Expression subject) {
  const Place place = token().place;
  if (take_operator(".")) {
    const Token name = take();
    if (name.kind == Token::Kind::kName) {
      Expression made = make(Op::kAttribute, place, std::move(subject));
      made.value = Value::text(name.text);
      return made;
    }
    if (name.kind != Token::Kind::kInteger) {
      fail("expected a name or a number behind \".\", got " + shown(name), name.place);
    }
    std::int64_t index = 0;
    std::from_chars(name.text.data(), name.text.data() + name.text.size(), index);
    return make(Op::kItem, place, std::move(subject), constant(Value::integer(index), name.place));
  }
  take();
  return subscribed(std::move(subject), place);
}

Expression ExpressionParser::subscribed(Expression subject, Place place) {
  const auto bound = [&] {
    return token().is_operator(":") || token().is_operator("]") ? constant(Value::none(), token().place) : expression();
  };
  Expression first = bound();
  if (token().is_operator(":")) {
    Expression made = make(Op::kSlice, place, std::move(subject), std::move(first));
    for (int i = 0; i < 2; ++i) {
      made.children.push_back(take_operator(":") ? bound() : constant(Value::none(), token().place));
    }
    if (token().is_operator(",")) fail("a slice of several axes is not something that a text or a list has", place);
    expect_operator("]");
    measure(made);
    return made;
  }
  if (token().is_operator(",")) {
    first = make(Op::kTuple, place, std::move(first));
    while (take_operator(",")) first.children.push_back(expression());
    measure(first);
  }
  if (first.op == Op::kConstant && first.value.is_none() && token().is_operator("]") &&
      first.place.column == token().place.column && first.place.line == token().place.line) {
    fail_expected("a value");
  }
  expect_operator("]");
  return make(Op::kItem, place, std::move(subject), std::move(first));
}

void ExpressionParser::arguments(Expression& call) {
  const Deeper deeper(*this);
  expect_operator("(");
  std::vector<Expression> named;
  Expression star, double_star;
  bool first = true;
  while (!token().is_operator(")")) {
    if (!first) {
      if (!take_operator(",")) fail_expected("\",\" or \")\"");
      if (token().is_operator(")")) break;
    }
    first = false;
    const Place place = token().place;
    if (take_operator("*")) {
      if (call.has_star || call.has_double_star) fail("only one \"*\" may stand here, before \"**\"", place);
      star = expression();
      call.has_star = true;
    } else if (take_operator("**")) {
      if (call.has_double_star) fail("only one \"**\" may stand here", place);
      double_star = expression();
      call.has_double_star = true;
    } else if (token().kind == Token::Kind::kName && next_token().is_operator("=")) {
      if (call.has_double_star) fail("no argument may stand behind \"**\"", place);
      if (std::find(call.keywords.begin(), call.keywords.end(), token().text) != call.keywords.end()) {
        fail("the argument " + runner::core::quote(token().text) + " is given twice", place);
      }
      call.keywords.push_back(take().text);
      take();
      named.push_back(expression());
    } else {
      if (call.has_star || call.has_double_star || !named.empty()) {
        fail("an argument without a name may not stand behind one with a name", place);
      }
      call.children.push_back(expression());
      ++call.positional;
    }
  }
  take();
  for (Expression& value : named) call.children.push_back(std::move(value));
  if (call.has_star) call.children.push_back(std::move(star));
  if (call.has_double_star) call.children.push_back(std::move(double_star));
  measure(call);
}

std::string ExpressionParser::dotted_name(std::string_view what) {
  std::string name = expect_identifier(what);
  while (take_operator(".")) name += "." + expect_identifier(what);
  return name;
}

Expression ExpressionParser::filter(Expression subject) {
  Expression made = make(Op::kFilter, token().place, std::move(subject));
  made.value = Value::text(dotted_name("the name of a filter"));
  if (token().is_operator("(")) arguments(made);
  return made;
}

Expression ExpressionParser::filters(Expression subject, bool starts_inline) {
  if (starts_inline) subject = filter(std::move(subject));
  while (true) {
    if (take_operator("|")) {
      subject = filter(std::move(subject));
    } else if (!starts_inline && token().is_name("is")) {
      subject = test(std::move(subject));
    } else if (!starts_inline && token().is_operator("(")) {
      subject = make(Op::kCall, token().place, std::move(subject));
      arguments(subject);
    } else {
      return subject;
    }
  }
}

Expression ExpressionParser::test(Expression subject) {
  const Place place = take().place;
  const bool negated = take_name("not");
  Expression made = make(Op::kTest, place, std::move(subject));
  made.value = Value::text(dotted_name("the name of a test"));
  const Token& next = token();
  const bool is_word = next.kind == Token::Kind::kName && next.text != "else" && next.text != "or" &&
                       next.text != "and" && next.text != "if" && next.text != "in" && next.text != "not";
  if (next.is_name("is")) fail("tests cannot be chained with \"is\"", next.place);
  if (next.is_operator("(")) {
    arguments(made);
  } else if (is_word || next.kind == Token::Kind::kString || next.kind == Token::Kind::kInteger ||
             next.kind == Token::Kind::kFloat || next.is_operator("[") || next.is_operator("{")) {
    made.children.push_back(postfix(primary()));
    made.positional = 1;
    measure(made);
  }
  return negated ? make(Op::kNot, place, std::move(made)) : made;
}

}  // namespace components::jinja
