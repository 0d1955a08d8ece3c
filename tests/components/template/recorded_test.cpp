#include <catch2/catch.hpp>
#include <ctime>
#include <string>

#include "components/template/template.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "tests/support/paths.h"

namespace {

using namespace components::jinja;
using runner::core::Node;

// recorded/cases.json has what Jinja2 3.1.6 makes of each template in the environment of Transformers 5.24
// (tests/parity/templates.py record); a case without a text is an error there.
TEST_CASE("templates render as Jinja2 renders them", "[template]") {
  const std::string path = tests::source_dir() + "/tests/components/template/recorded/cases.json";
  const Node recorded = runner::core::parse_json(runner::core::read_file(path, 1 << 20).value()).value();
  const Value variables = Value::from(*recorded.find("variables"));
  RenderOptions options;
  ::strptime("2026-11-29 12:00:00", "%Y-%m-%d %H:%M:%S", &options.now);
  for (const Node& one : recorded.find("cases")->items()) {
    const std::string& source = one.find("template")->as_string();
    INFO(source);
    const auto parsed = Template::parse(source, "t");
    const Node* text = one.find("text");
    if (!parsed) {
      CHECK(!text);
      continue;
    }
    const auto rendering = parsed.value().render(variables, options);
    if (!rendering) {
      INFO(rendering.failure().message);
      CHECK(!text);
    } else {
      REQUIRE(text);
      CHECK(rendering.value().text == text->as_string());
    }
  }
}

std::string message_of_failure(const std::string& source) {
  const auto parsed = Template::parse(source, "t.jinja");
  if (!parsed) return parsed.failure().message;
  const auto rendering = parsed.value().render(Value::from(Node::mapping()));
  return rendering ? "" : rendering.failure().message;
}

TEST_CASE("what a template does wrong is shown at its place", "[template]") {
  struct Case {
    const char *source, *message;
  };
  static constexpr Case cases[] = {
      {"a\n{% if %}", "t.jinja:2:7: expected a value, got \"%}\""},
      {"{{ x", "t.jinja:1:1: this tag is not closed with \"}}\""},
      {"{{ (1 }}", "t.jinja:1:7: \"}\" stands where \")\" was expected"},
      {"{{ 1 2 }}", "t.jinja:1:6: expected \"}}\", got \"2\""},
      {"ä{{ a.b.c }}", "t.jinja:1:6: 'a' is undefined"},
      {"{% foo %}", "t.jinja:1:4: no statement is called \"foo\""},
      {"{% include 'x' %}", "t.jinja:1:4: {% include %} reads another template, which a chat template cannot"},
      {"{{ 1 | foo }}", "t.jinja:1:8: no filter is called \"foo\""},
      {"{{ 1 is foo }}", "t.jinja:1:6: no test is called \"foo\""},
      {"{{ raise_exception('no tools') }}", "t.jinja:1:19: the template refuses this: no tools"},
      {"{{ [1].append(2) }}", "t.jinja:1:14: \"append\" of a list would change it, which a template may not"},
      {"{{ 'a' + 1 }}", "t.jinja:1:8: \"+\" cannot combine a str with a int"},
      {"{{ 2 ** 64 }}", "t.jinja:1:6: the result of \"**\" does not fit into 64 bits"},
  };
  for (const Case& one : cases) {
    INFO(one.source);
    CHECK(message_of_failure(one.source) == one.message);
  }
}

}  // namespace
