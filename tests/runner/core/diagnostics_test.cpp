#include "runner/core/diagnostics.h"

#include <catch2/catch.hpp>

using namespace runner::core;

namespace {

std::shared_ptr<const Source> source(const std::string& name, const std::string& text) {
  return std::make_shared<const Source>(Source{name, text, Source::Kind::kFile});
}

}  // namespace

TEST_CASE("a diagnostic shows place, line, carets and the hint", "[core][diagnostics]") {
  struct Case {
    const char* name;
    std::string text;
    Location location;
    const char* expected;
  };
  const Case cases[] = {
      {"a value",
       "a:\n  warmup_steps: 5000\n",
       {nullptr, 2, 17, 4},
       "r.yaml:2:17: error: wrong\n    2 |   warmup_steps: 5000\n      |                 ^~~~\n  hint: mend it\n"},
      {"a tab counts as one column",
       "\tx: 1\n",
       {nullptr, 1, 2, 1},
       "r.yaml:1:2: error: wrong\n    1 |  x: 1\n      |  ^\n  hint: mend it\n"},
      {"bytes that are no text are escaped",
       "a: \x01\xFF b\n",
       {nullptr, 1, 7, 1},
       "r.yaml:1:7: error: wrong\n    1 | a: \\x01\\xff b\n      |             ^\n  hint: mend it\n"},
      {"wide characters take two columns",
       "\xE6\x97\xA5: x\n",
       {nullptr, 1, 4, 1},
       "r.yaml:1:4: error: wrong\n    1 | \xE6\x97\xA5: x\n      |     ^\n  hint: mend it\n"},
      {"the end of a line",
       "ab\n",
       {nullptr, 1, 3, 1},
       "r.yaml:1:3: error: wrong\n    1 | ab\n      |   ^\n  hint: mend it\n"},
      {"a line that is not there", "ab\n", {nullptr, 9, 5, 1}, "r.yaml:9:5: error: wrong\n  hint: mend it\n"},
      {"the file as a whole", "ab\n", {nullptr, 0, 0, 1}, "r.yaml: error: wrong\n  hint: mend it\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      Location location = c.location;
      location.source = source("r.yaml", c.text);
      CHECK(render(Diagnostic{Severity::kError, location, "wrong", "mend it"}) == c.expected);
    }
  }
}

TEST_CASE("a diagnostic escapes terminal controls in what it quotes", "[core][diagnostics]") {
  const Diagnostic said{Severity::kError, {}, "no \x1b[2Jtensor", "it is \x9b"};
  CHECK(render(said) == "error: no \\x1b[2Jtensor\n  hint: it is \\x9b\n");
}

TEST_CASE("a long line is cut around the caret", "[core][diagnostics]") {
  const Location location{source("r.yaml", std::string(500, 'x') + "Y" + std::string(500, 'z')), 1, 501, 1};
  const std::string expected = "r.yaml:1:501: error: wrong\n    1 | ..." + std::string(33, 'x') + "Y" +
                               std::string(66, 'z') + "...\n      | " + std::string(36, ' ') + "^\n";
  CHECK(render(Diagnostic{Severity::kError, location, "wrong", ""}) == expected);
}

TEST_CASE("diagnostics come in the order of the text, each once, files as they appeared", "[core][diagnostics]") {
  const auto a = source("a.yaml", "1\n2\n"), b = source("b.yaml", "1\n");
  Diagnostics all;
  all.error({b, 1, 1, 1}, "first");
  all.warning({a, 2, 1, 1}, "third");
  all.error({a, 1, 1, 1}, "second");
  all.error({b, 1, 1, 1}, "first");
  all.sort();
  CHECK(all.error_count() == 2);
  CHECK(render(all, {false, false}) ==
        "b.yaml:1:1: error: first\na.yaml:1:1: error: second\na.yaml:2:1: warning: third\n");
}

TEST_CASE("a hundred diagnostics are enough", "[core][diagnostics]") {
  Diagnostics all;
  for (int i = 0; i < 130; ++i) all.error({}, "e" + std::to_string(i));
  const std::string text = render(all);
  const std::string end = "error: e99\n... and 30 more\n";
  CHECK(text.substr(text.size() - end.size()) == end);
}
