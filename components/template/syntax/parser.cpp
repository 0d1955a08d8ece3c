#include "components/template/syntax/parser.h"

#include <algorithm>
#include <utility>

#include "components/template/syntax/expression_parser.h"
#include "components/template/syntax/lexer.h"
#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

using Names = std::vector<std::string_view>;

class Parser : public ExpressionParser {
 public:
  Parser(std::vector<Token> tokens, Tree& tree) : ExpressionParser(std::move(tokens), tree), tree_(tree) {}

  void run() {
    tree_.loop = symbol("loop");
    tree_.caller = symbol("caller");
    tree_.varargs = symbol("varargs");
    tree_.kwargs = symbol("kwargs");
    tree_.body = body({});
  }

 private:
  /// Statements up to a tag that begins with one of `ends`, of which the name is still to be taken.
  Body body(const Names& ends) {
    const Deeper deeper(*this);
    Body made;
    const Place opened = token().place;
    while (token().kind != Token::Kind::kEnd) {
      if (token().kind == Token::Kind::kBlockBegin) {
        if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return next_token().is_name(end); })) {
          take();
          return made;
        }
        take();
        statement(made);
        continue;
      }
      Statement& one = made.emplace_back();
      one.place = token().place;
      if (token().kind == Token::Kind::kData) {
        one.text.bytes = take().text;
        continue;
      }
      take();
      one.act = Act::kOutput;
      one.expression = tuple();
      if (token().kind != Token::Kind::kVariableEnd) fail_expected("\"}}\"");
      take();
    }
    if (!ends.empty()) {
      fail("the block that begins here is not closed with \"" + std::string(ends.back()) + "\"", opened);
    }
    return made;
  }

  void end_tag() {
    if (token().kind != Token::Kind::kBlockEnd) fail_expected("\"%}\"");
    take();
  }

  Body body_of(const Names& ends) {
    end_tag();
    return body(ends);
  }

  /// The body up to `end`, with its tag.
  Body whole_body(std::string_view end) {
    Body made = body_of({end});
    expect_name(end);
    return made;
  }

  void statement(Body& into) {
    const Place place = token().place;
    const std::string name = expect_identifier("the name of a statement");
    Statement one;
    one.place = place;
    if (name == "if") {
      if_statement(one);
    } else if (name == "for") {
      for_statement(one);
    } else if (name == "set") {
      set_statement(one);
    } else if (name == "macro") {
      macro(one);
    } else if (name == "call") {
      call_block(one);
    } else if (name == "filter") {
      one.act = Act::kFilterBlock;
      one.expression = filters(empty_text(), true);
      one.body = in_scope([&] { return whole_body("endfilter"); }, loops_);
    } else if (name == "with") {
      with_statement(one);
    } else if (name == "block") {
      one.act = Act::kScope;
      const std::string block = expect_identifier("the name of a block");
      one.body = in_scope([&] { return whole_body("endblock"); }, 0);
      take_name(block);
    } else if (name == "generation") {
      one.act = Act::kGeneration;
      tree_.has_generation = true;
      one.body = in_scope([&] { return whole_body("endgeneration"); }, 0);
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) fail("\"" + name + "\" stands outside of a loop", place);
      one.act = name == "break" ? Act::kBreak : Act::kContinue;
    } else {
      refuse(name, place);
    }
    end_tag();
    into.push_back(std::move(one));
  }

  [[noreturn]] void refuse(const std::string& name, Place place) {
    if (name == "include" || name == "import" || name == "from" || name == "extends") {
      fail("{% " + name + " %} reads another template, which a chat template cannot", place);
    }
    if (name.starts_with("end") || name == "else" || name == "elif") {
      fail("{% " + name + " %} closes nothing that is open here", place);
    }
    fail("no statement is called " + runner::core::quote(name), place);
  }

  /// What `parse` reads, where break and continue mean the loops of `loops`.
  template <typename Parse>
  Body in_scope(Parse parse, int loops) {
    const int before = std::exchange(loops_, loops);
    Body made = parse();
    loops_ = before;
    return made;
  }

  static Expression empty_text() {
    Expression made;
    made.value = Value::text(std::string());
    return made;
  }

  void if_statement(Statement& one) {
    one.act = Act::kIf;
    one.expression = tuple(true);
    one.body = body_of({"elif", "else", "endif"});
    if (token().is_name("elif")) {
      Statement other;
      other.place = take().place;
      const Deeper deeper(*this);
      if_statement(other);  // takes the endif, too
      one.otherwise.push_back(std::move(other));
      return;
    }
    if (take_name("else")) one.otherwise = body_of({"endif"});
    expect_name("endif");
  }

  void for_statement(Statement& one) {
    one.act = Act::kFor;
    one.target = target(false, "in");
    expect_name("in");
    one.expression = tuple(true, "recursive");
    if (take_name("if")) {
      one.has_condition = true;
      one.condition = expression();
    }
    one.is_recursive = take_name("recursive");
    one.body = in_scope([&] { return body_of({"else", "endfor"}); }, loops_ + 1);
    if (take_name("else")) one.otherwise = body_of({"endfor"});
    expect_name("endfor");
  }

  void set_statement(Statement& one) {
    const Place place = token().place;
    one.target = target(true);
    if (loops_ > 0 && names(one.target, tree_.loop)) fail("\"loop\" cannot be set inside of a loop", place);
    if (take_operator("=")) {
      one.act = Act::kSet;
      one.expression = tuple();
      return;
    }
    one.act = Act::kSetBlock;
    if (one.target.op == Op::kTuple) fail_expected("\"=\"");
    if (take_operator("|")) {
      one.has_condition = true;
      one.expression = filters(empty_text(), true);
    }
    one.body = in_scope([&] { return whole_body("endset"); }, loops_);
  }

  std::shared_ptr<Signature> signature() {
    auto made = std::make_shared<Signature>();
    expect_operator("(");
    while (!token().is_operator(")")) {
      if (!made->names.empty()) {
        if (!take_operator(",")) fail_expected("\",\" or \")\"");
        if (token().is_operator(")")) break;
      }
      made->names.push_back(expect_identifier("the name of a parameter"));
      made->parameters.push_back(symbol(made->names.back()));
      if (take_operator("=")) {
        made->defaults.push_back(expression());
      } else if (!made->defaults.empty()) {
        fail_expected("\"=\", as a parameter before this one has a default");
      }
    }
    take();
    return made;
  }

  /// The body of a macro or a caller, and which of the names that every one has it uses.
  Body macro_body(Signature& signature, std::string_view end) {
    Body made = in_scope([&] { return whole_body(end); }, 0);
    const auto uses = [&](int symbol) { return names(made, symbol); };
    signature.uses_varargs = uses(tree_.varargs);
    signature.uses_kwargs = uses(tree_.kwargs);
    signature.uses_caller = uses(tree_.caller);
    return made;
  }

  void macro(Statement& one) {
    one.act = Act::kMacro;
    const std::string name = expect_identifier("the name of a macro");
    one.symbol = symbol(name);
    const auto made = signature();
    made->name = name;
    one.body = macro_body(*made, "endmacro");
    take_name(name);
    one.signature = made;
  }

  void call_block(Statement& one) {
    one.act = Act::kCallBlock;
    const auto made = token().is_operator("(") ? signature() : std::make_shared<Signature>();
    made->name = "caller";
    const Place place = token().place;
    one.expression = expression();
    if (one.expression.op != Op::kCall) fail("{% call %} expects a call", place);
    one.body = macro_body(*made, "endcall");
    one.signature = made;
  }

  void with_statement(Statement& one) {
    one.act = Act::kWith;
    while (token().kind != Token::Kind::kBlockEnd) {
      if (!one.targets.empty() && !take_operator(",")) fail_expected("\",\" or \"%}\"");
      one.targets.push_back(target(false));
      expect_operator("=");
      one.values.push_back(expression());
    }
    one.body = whole_body("endwith");
  }

  static bool names(const Expression& one, int symbol) {
    return (one.op == Op::kName && one.symbol == symbol) ||
           std::any_of(one.children.begin(), one.children.end(),
                       [&](const auto& child) { return names(child, symbol); });
  }

  static bool names(const Body& body, int symbol) {
    const auto in = [&](const std::vector<Expression>& several) {
      return std::any_of(several.begin(), several.end(), [&](const auto& one) { return names(one, symbol); });
    };
    return std::any_of(body.begin(), body.end(), [&](const Statement& one) {
      return names(one.expression, symbol) || names(one.condition, symbol) || in(one.values) ||
             names(one.body, symbol) || names(one.otherwise, symbol);
    });
  }

  Tree& tree_;
  int loops_ = 0;
};

}  // namespace

Tree parse_template(std::string_view source) {
  Tree tree;
  std::vector<Token> tokens = tokens_of(source);
  for (const Token& token : tokens) {
    if (token.kind == Token::Kind::kName || token.kind == Token::Kind::kString) tree.words.insert(token.text);
  }
  Parser(std::move(tokens), tree).run();
  return tree;
}

}  // namespace components::jinja
