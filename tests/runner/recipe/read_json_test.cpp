#include <catch2/catch.hpp>

#include "runner/recipe/read.h"

using runner::core::Diagnostics;
using runner::core::Source;

namespace {

std::string read(const std::string& text) {
  Diagnostics diagnostics;
  const auto source = std::make_shared<const Source>(Source{"r.json", text, Source::Kind::kFile});
  const auto node = runner::recipe::read_json(source, {}, diagnostics);
  return node ? to_json(*node, -1) : render(diagnostics);
}

}  // namespace

TEST_CASE("JSON keeps kinds and places", "[recipe][json]") {
  const std::string text = "{\"a\": [1, 2.5, -3e-2],\n \"b\": {\"c\": \"x\\\"y\", \"d\": null, \"e\": true}}";
  CHECK(read(text) == R"({"a": [1, 2.5, -0.03], "b": {"c": "x\"y", "d": null, "e": true}})");
  Diagnostics diagnostics;
  const auto node = runner::recipe::read_json(
      std::make_shared<const Source>(Source{"r.json", text, Source::Kind::kFile}), {}, diagnostics);
  CHECK(node->at_path("a[2]")->location().text() == "r.json:1:16");
  CHECK(node->at_path("a[2]")->scalar_text() == "-3e-2");
  CHECK(node->at_path("b.e")->location().text() == "r.json:2:37");
  CHECK(node->at_path("b")->find_entry("d")->key_location.text() == "r.json:2:21");
}

TEST_CASE("errors in JSON are reported at their location", "[recipe][json]") {
  struct Case {
    std::string json;
    const char* expected;
  };
  const Case cases[] = {
      {"", "r.json: error: the file is empty\n"},
      {"{\"a\": 1,}",
       "r.json:1:9: error: invalid JSON: unexpected '}'; expected string literal\n    1 | {\"a\": 1,}\n      "
       "|         ^\n  hint: remove the comma before it\n"},
      {"{\"a\": 1, \"a\": 2}",
       "r.json:1:10: error: the key \"a\" appears twice in this object\n    1 | {\"a\": 1, \"a\": 2}\n      |          "
       "^~~\n  hint: the first one is at line 1\n"},
      {"[99999999999999999999]",
       "r.json:1:2: error: the integer 99999999999999999999 does not fit into 64 bits\n    1 | "
       "[99999999999999999999]\n      |  ^~~~~~~~~~~~~~~~~~~~\n"},
      {"[0e-400, 1.0e-400]",
       "r.json:1:10: error: the number 1.0e-400 does not fit into 64 bits\n    1 | [0e-400, 1.0e-400]\n      |     "
       "     ^~~~~~~~\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    CHECK(read(c.json) == c.expected);
  }
  CHECK(read(std::string(10000, '[')).substr(0, 52) == "r.json:1:65: error: nested more than 64 levels deep\n");
}
