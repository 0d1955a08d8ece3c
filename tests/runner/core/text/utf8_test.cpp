#include "runner/core/text/utf8.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/core/json.h"
#include "runner/core/node.h"

namespace {

using namespace runner::core;

}  // namespace

TEST_CASE("what would talk to the terminal or turn its text round is written out", "[core][utf8]") {
  struct Case {
    const char* name;
    const char* text;
    const char* line;   // escape_for_terminal
    const char* lines;  // printable
  };
  static constexpr Case cases[] = {
      {"letters of all scripts stay", "loss \u05d0\u05d1 \u4e16 \U0001f525", "loss \u05d0\u05d1 \u4e16 \U0001f525",
       "loss \u05d0\u05d1 \u4e16 \U0001f525"},
      {"an escape sequence", "a\x1b[31mb", "a\\x1b[31mb", "a\\x1b[31mb"},
      {"a tab and a line feed", "a\tb\nc", "a b\\x0ac", "a    b\nc"},
      {"an override of the direction", "a\u202eb", "a\\xe2\\x80\\xaeb", "a\\xe2\\x80\\xaeb"},
      {"an isolate", "a\u2066b", "a\\xe2\\x81\\xa6b", "a\\xe2\\x81\\xa6b"},
      {"a line separator", "a\u2028b", "a\\xe2\\x80\\xa8b", "a\\xe2\\x80\\xa8b"},
      {"a control character of two bytes", "a\u009bb", "a\\xc2\\x9bb", "a\\xc2\\x9bb"},
      {"a byte that is no UTF-8", "a\xff", "a\\xff", "a\\xff"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(escape_for_terminal(c.text) == c.line);
      CHECK(printable(c.text) == c.lines);
    }
  }
}

TEST_CASE("JSON may be shown on a terminal, and is read as what was written", "[core][utf8]") {
  CHECK(json_quote("a\x1b[31m\n") == R"("a\u001b[31m\n")");
  CHECK(json_quote("a\u009b31m\u202e\u2028\u061c\x7f") == R"("a\u009b31m\u202e\u2028\u061c\u007f")");
  CHECK(json_quote("\u00e9\u05d0\u4e16\U0001f525") == "\"\u00e9\u05d0\u4e16\U0001f525\"");
  for (const std::string text : {"a\u009b\u202eb\u2066", "\u00a0\u061c\u2029"}) {
    CHECK(parse_json(json_quote(text)).value().as_string() == text);
    CHECK(to_yaml(Node::string(text)).find("\\u") != std::string::npos);
  }
}

TEST_CASE("columns of a terminal are counted, and cut between code points", "[core][utf8]") {
  CHECK(terminal_columns("loss") == 4);
  CHECK(terminal_columns("\u00e9") == 1);
  CHECK(terminal_columns("e\u0301") == 1);
  CHECK(terminal_columns("\u4e16\u754c") == 4);
  CHECK(terminal_columns("\U0001f525") == 2);
  CHECK(first_columns("a\u4e16b", 2) == "a");
  CHECK(first_columns("a\u4e16b", 3) == "a\u4e16");
  CHECK(first_columns("e\u0301x", 1) == "e\u0301");
}
