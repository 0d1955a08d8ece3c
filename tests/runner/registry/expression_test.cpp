#include "runner/registry/expression.h"

#include <catch2/catch.hpp>
#include <memory>

#include "runner/recipe/read.h"

namespace runner::registry {
namespace {

core::Node block(const std::string& yaml) {
  core::Diagnostics diagnostics;
  auto source = std::make_shared<core::Source>(core::Source{"block.yaml", yaml, core::Source::Kind::kFile});
  auto node = recipe::read_yaml(source, {}, diagnostics);
  REQUIRE(node.has_value());
  return *node;
}

TEST_CASE("a rule is held against the values of a component", "[registry][expression]") {
  const core::Node values =
      block("{a: 3, b: 4, x: 0.5, name: relu, on: true, off: false, none: null, list: [0.9, 0.99], inner: {deep: 7}}");
  struct Case {
    const char* rule;
    bool holds;
  };
  static constexpr Case cases[] = {
      {"a < b", true},
      {"a <= 3", true},
      {"a > b", false},
      {"a >= 4", false},
      {"a == 3.0", true},
      {"a != 3", false},
      {"b % 2 == 0", true},
      {"b % a == 0", false},
      {"a + b * 2 == 11", true},
      {"(a + b) * 2 == 14", true},
      {"a - b - 1 == -2", true},
      {"-a < 0", true},
      {"b / 8 == x", true},
      {"name == \"relu\"", true},
      {"name == 'gelu'", false},
      {"name in [\"relu\", \"gelu\"]", true},
      {"name not in [\"relu\"]", false},
      {"a in [1, 2]", false},
      {"on", true},
      {"off", false},
      {"not off and on", true},
      {"off or a == 3", true},
      {"not (on and a == 3)", false},
      {"not not on", true},
      {"list[0] < list[1]", true},
      {"list[1] >= 1", false},
      {"len(list) == 2", true},
      {"len(name) == 3", false},
      {"rises(list)", true},
      {"not rises(list)", false},
      {"rises(name)", true},
      {"rises(missing)", true},
      {"inner.deep == 7", true},
      {"inner.deep < 7", false},
      {"none is null", true},
      {"none is not null", false},
      {"a is null", false},
      {"missing is null", true},
      {"none == null", true},
      {"a != null and not (a == null)", true},
      {"null != missing", false},
      {"name in ('relu', \"gelu\")", true},
      {"a not in (1, b - 1)", false},
      {"name ~ 'RE' and name =~ '^re[l]u$' and `name` == 'relu'", true},
      {"name =~ '^elu'", false},
      // What is not there yet contradicts nothing, unless the other side decides.
      {"none > 3", true},
      {"missing == 1", true},
      {"not (missing == 1)", true},
      {"off and missing > 1", false},
      {"on or missing > 1", true},
      {"off or missing > 1", true},
      // A wrong type is told elsewhere.
      {"name > 3", true},
      {"name == 3", false},
      // Nothing is divided by zero.
      {"a / 0 == 1", true},
      {"a % 0 == 1", true},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.rule) {
      const auto rule = parse_expression(c.rule);
      REQUIRE(rule.ok());
      CHECK(rule.value().holds(values) == c.holds);
    }
  }
}

TEST_CASE("a rule that cannot be read says what was expected", "[registry][expression]") {
  struct Case {
    const char* rule;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"", "expected a value at column 1, got the end"},
      {"a <", "expected a value at column 4, got the end"},
      {"a < b c", "expected an operator or the end at column 7, got `c`"},
      {"(a < b", "expected `)` at column 7, got the end"},
      {"a in 3", "expected `[` at column 6, got `3`"},
      {"name =~ relu", "expected a \"pattern\" at column 9, got `relu`"},
      {"name =~ 'a(b'", "\"a(b\" is not a regular expression: missing ) at \"a(b\" at column 9"},
      {"a in (1 2)", "expected `,` or `)` at column 9, got `2)`"},
      {"a in [1 2]", "expected `,` or `]` at column 9, got `2]`"},
      {"a is 3", "expected `null` at column 6, got `3`"},
      {"name == \"relu", "expected a closing quote at column 9, got `\"relu`"},
      {"and b", "expected a value at column 1, got `and b`"},
      {"a = b", "expected an operator or the end at column 3, got `= b`"},
      {"a < 1e", "expected an operator or the end at column 6, got `e`"},
      {"$a", "expected a value at column 1, got `$a`"},
      {"rises(3)", "expected the name of a key and `)` at column 7, got `3)`"},
      {"len(3)", "expected the name of a key and `)` at column 5, got `3)`"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION("`" << c.rule << "`") {
      const auto rule = parse_expression(c.rule);
      REQUIRE_FALSE(rule.ok());
      CHECK(rule.failure().message == c.message);
    }
  }
  CHECK_FALSE(parse_expression(std::string(10000, '(')).ok());
  CHECK_FALSE(parse_expression(std::string(10000, '[')).ok());
  std::string sum = "a";
  for (int i = 0; i < 100'000; ++i) sum += " + a";
  CHECK(parse_expression(sum).failure().message ==
        "expected at most 1000 signs of arithmetic at column 4003, got `+ a + a + a `");
  std::string chain = "a > 0";
  for (int i = 0; i < 100'000; ++i) chain += i % 2 == 0 ? " and not a > 0" : " or a > 0";
  CHECK(parse_expression(chain).ok());
}

TEST_CASE("a rule names its keys once", "[registry][expression]") {
  const auto rule = parse_expression("a < b and a % 2 == 0 or len(list) > inner.deep and x in [y]");
  REQUIRE(rule.ok());
  CHECK(rule.value().keys() == std::vector<std::string>{"a", "b", "list", "inner", "x", "y"});
}

TEST_CASE("messages show values as they were written", "[registry][expression]") {
  const core::Node values = block("{lr: 1e-4, hex: 0x10, text: \"relu\", list: [1, 2], none: null}");
  struct Case {
    const char* message;
    const char* shown;
  };
  static constexpr Case cases[] = {
      {"lr is {lr}", "lr is 1e-4"},
      {"{hex} and {text}", "0x10 and relu"},
      {"{list} has {list[1]}", "[1, 2] has 2"},
      {"{unknown} stays, { too", "{unknown} stays, { too"},
      {"", ""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.message) { CHECK(substitute_keys(c.message, values) == c.shown); }
  }
}

}  // namespace
}  // namespace runner::registry
