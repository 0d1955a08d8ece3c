#include <catch2/catch.hpp>

#include "runner/recipe/read.h"
#include "tests/support/history.h"

using runner::core::Diagnostics;
using runner::core::Node;
using runner::core::Source;

namespace {

std::shared_ptr<const Source> source(std::string text) {
  return std::make_shared<const Source>(Source{"r.yaml", std::move(text), Source::Kind::kFile});
}

std::string read(const std::string& text) {
  Diagnostics diagnostics;
  const auto node = runner::recipe::read_yaml(source(text), {}, diagnostics);
  return node ? to_json(*node, -1) : render(diagnostics);
}

}  // namespace

TEST_CASE("YAML is read with the core schema's types", "[recipe][yaml]") {
  struct Case {
    const char* yaml;
    const char* json;
  };
  static constexpr Case cases[] = {
      {"a: 1e-4", R"({"a": 1e-4})"},
      {"a: no\nb: '12'\nc: 1_000", R"({"a": "no", "b": "12", "c": "1_000"})"},
      {"a:\nb: ~", R"({"a": null, "b": null})"},
      {"a: &x {b: [1, 2]}\nc: *x", R"({"a": {"b": [1, 2]}, "c": {"b": [1, 2]}})"},
      {"1: one\ntrue: yes", R"({"1": "one", "true": "yes"})"},
      {"a: |\n  x\n   y\nb: >-\n  x\n  y\n", R"({"a": "x\n y\n", "b": "x y"})"},
      {"a: \"!not a tag\"\nb: 'it''s'", R"({"a": "!not a tag", "b": "it's"})"},
      {"a: ${vars.x}\nb: \"\\u00e9\"", "{\"a\": \"${vars.x}\", \"b\": \"\xC3\xA9\"}"},
      {"\xEF\xBB\xBF"
       "a: 1\r\nb: 2\r\n",
       R"({"a": 1, "b": 2})"},
      {"---\na: 1\n...\n", R"({"a": 1})"},
      {"%YAML 1.2\n---\na: 1\n", R"({"a": 1})"},
      {"- a\n- - b\n", R"(["a", ["b"]])"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.yaml);
    CHECK(read(c.yaml) == c.json);
  }
}

TEST_CASE("every value and key knows its place", "[recipe][yaml]") {
  struct Case {
    const char* path;
    int line, column, width;
  };
  static const std::string yaml =
      "# first\n"
      "a: 1e-4  # c\n"
      "b: {x: \"q\\\"r\", y: [1, 2]}\n"
      "c: &n [~]\n"
      "\xC3\xA9: 'it''s' \n"
      "d: |\n  text\n"
      "e:\n  - f: plain words\n"
      "g: *n\n"
      "h:\n"
      "i: null\n";
  static constexpr Case cases[] = {
      {"a", 2, 4, 4},       {"b", 3, 4, 22},   {"b.x", 3, 8, 6},      {"b.y", 3, 19, 6}, {"b.y[1]", 3, 23, 1},
      {"c", 4, 7, 3},       {"c[0]", 4, 8, 1}, {"\xC3\xA9", 5, 4, 7}, {"d", 6, 4, 1},    {"e", 9, 3, 1},
      {"e[0].f", 9, 8, 11}, {"h", 11, 1, 1},   {"i", 12, 4, 4},
  };
  Diagnostics diagnostics;
  const auto node = runner::recipe::read_yaml(source(yaml), {}, diagnostics);
  REQUIRE(node);
  for (const Case& c : cases) {
    CAPTURE(c.path);
    const Node* value = node->at_path(c.path);
    REQUIRE(value);
    CHECK(value->location().line == c.line);
    CHECK(value->location().column == c.column);
    CHECK(value->location().width == c.width);
  }
  CHECK(node->find_entry("\xC3\xA9")->key_location.text() == "r.yaml:5:1");
  CHECK(node->find("g")->location().text() == "r.yaml:4:7");
  CHECK(tests::history_of(*node->find("g")) == std::vector<std::string>{"alias at r.yaml:10:4"});
}

TEST_CASE("several mistakes that leave the rest readable are reported together", "[recipe][yaml]") {
  CHECK(read("a: 1\nb: !!str 2\na: 3\n<<: {c: 1}\n") ==
        "r.yaml:2:4: error: the tag \"!!str\": tags are not allowed in a recipe\n"
        "    2 | b: !!str 2\n"
        "      |    ^~~~~\n"
        "  hint: remove it; put text that begins with ! in quotes\n"
        "r.yaml:3:1: error: the key \"a\" appears twice in this mapping\n"
        "    3 | a: 3\n"
        "      | ^\n"
        "  hint: the first one is at line 1\n"
        "r.yaml:4:1: error: the merge key << is not part of YAML 1.2\n"
        "    4 | <<: {c: 1}\n"
        "      | ^~\n"
        "  hint: use extends, or put the alias under its own key\n");
}

TEST_CASE("line ends and keys that the parser would take for something else are named", "[recipe][yaml]") {
  const auto first_line = [](const std::string& told) { return told.substr(0, told.find('\n')); };
  CHECK(first_line(read("# a recipe\rseed: 1\r")) == "r.yaml:1:11: error: the lines end with CR alone");
  CHECK(first_line(read("seed: 1\r")) == "r.yaml:1:8: error: the lines end with CR alone");
  const std::string key(1100, 'k');
  CHECK(first_line(read("a:\n  " + key + ": 1\n")) == "r.yaml:2:3: error: a key of more than 1024 characters");
  CHECK(first_line(read("a: {'" + key + "': 1}\n")) == "r.yaml:1:5: error: a key of more than 1024 characters");
  CHECK(read("a:\n  ? " + key + "\n  : 1\n") == "{\"a\": {\"" + key + "\": 1}}");
}

TEST_CASE("what only looks like a space is named", "[recipe][yaml]") {
  const auto first_line = [](const std::string& told) { return told.substr(0, told.find('\n')); };
  CHECK(read("a:\n  b: 1\n\u00A0 c: 2\n") ==
        "r.yaml:3:1: error: a no-break space (U+00A0) before the text\n"
        "    3 | \u00A0 c: 2\n"
        "      | ^\n"
        "  hint: write a space in its place; in text, put the text in quotes\n");
  CHECK(first_line(read("a:\n  b: 1\n \u00A0c: 2\n")) ==
        "r.yaml:3:2: error: a no-break space (U+00A0), where YAML needs a space");
  CHECK(first_line(read("b: 1\nc:\u00A02\n")) ==
        "r.yaml:2:1: error: a no-break space (U+00A0), where YAML needs a space");
  CHECK(first_line(read("b: 1\nc: 2\u00A0\n")) == "r.yaml:2:5: error: a no-break space (U+00A0) after the text");
  CHECK(first_line(read("b: \u200Bx\n")) == "r.yaml:1:4: error: a zero-width space (U+200B) before the text");
  CHECK(read("b: \"\u00A0\"\nc: x\u00A0y\n") == "{\"b\": \"\u00A0\", \"c\": \"x\u00A0y\"}");
}

TEST_CASE("hostile text is refused quickly", "[recipe][yaml]") {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(below + ", ", 9) + below + "]\n";
  }
  struct Case {
    const char* name;
    std::string yaml;
    const char* first_line;
  };
  const Case cases[] = {
      {"brackets", repeated("[", 10000) + repeated("]", 10000), "r.yaml:1:65: error: nested more than 64 levels deep"},
      {"braces", repeated("{a: ", 10000) + repeated("}", 10000),
       "r.yaml:1:257: error: nested more than 64 levels deep"},
      {"open brackets", repeated("[", 10000), "r.yaml:1:1: error: this [ is never closed"},
      {"dashes", repeated("- ", 10000), "r.yaml:1:129: error: nested more than 64 levels deep"},
      {"question marks", repeated("? ", 10000), "r.yaml:1:3: error: a mapping cannot be a key"},
      {"billion laughs", laughs, "r.yaml:5:25: error: the aliases of this file repeat more than 50000 values"},
      {"a value in itself", "a: &x [1, *x]", "r.yaml:1:11: error: the value refers to itself"},
      {"many values", "[" + repeated("1,", 150000) + "1]",
       "r.yaml:1:200000: error: more than 100000 values in one file"},
      {"a large file", repeated("# comment\n", 500000),
       "r.yaml: error: the file has 5.0 MB, a recipe has at most 4.2 MB"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const std::string told = read(c.yaml);
      CHECK(told.substr(0, told.find('\n')) == c.first_line);
    }
  }
}

TEST_CASE("a value on the command line is read as in a recipe", "[recipe][yaml]") {
  struct Case {
    const char* text;
    const char* json;
  };
  static constexpr Case cases[] = {{"1e-4", "1e-4"},
                                   {"", "null"},
                                   {"[1, two]", R"([1, "two"])"},
                                   {"{type: adamw}", R"({"type": "adamw"})"},
                                   {"no", "\"no\""},
                                   {"'12'", "\"12\""},
                                   {"a b", "\"a b\""}};
  const auto flag = std::make_shared<const Source>(Source{"--set a=b", "", Source::Kind::kFlag});
  for (const Case& c : cases) {
    CAPTURE(c.text);
    Diagnostics diagnostics;
    CHECK(to_json(runner::recipe::read_value(flag, c.text, diagnostics).value(), -1) == c.json);
  }
  Diagnostics diagnostics;
  CHECK_FALSE(runner::recipe::read_value(flag, "[1", diagnostics));
  CHECK(render(diagnostics) ==
        "--set a=b: error: the value \"[1\" cannot be read: this [ is never closed, or a comma is missing between two "
        "entries\n"
        "  hint: close it with ]\n");
}

TEST_CASE("what YAML 1.1 has is taken where it is asked for", "[recipe][yaml]") {
  runner::recipe::Limits limits;
  limits.yaml_1_1 = true;
  const auto merged = [&](const char* text) {
    Diagnostics diagnostics;
    const auto node = runner::recipe::read_yaml(source(text), limits, diagnostics);
    return node ? to_json(*node, -1) : render(diagnostics, {.excerpts = false});
  };
  CHECK(merged("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}") == R"({"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}})");
  CHECK(merged("<<: [{a: 1, b: {<<: {c: 2}}}, {a: 3, d: 4}]\n") == R"({"a": 1, "b": {"c": 2}, "d": 4})");
  CHECK(merged("a: [yes, No, ON, off, 'yes', yEs]") == R"({"a": [true, false, true, false, "yes", "yEs"]})");
  CHECK(merged("a: 1\n<<: x") ==
        "r.yaml:2:1: error: the merge key << takes a mapping, or a list of mappings\n"
        "  hint: write <<: *NAME, where &NAME stands before a mapping\n");
}
