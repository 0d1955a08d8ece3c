#include "runner/core/language/name_map.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/core/language/pattern.h"

namespace runner::core {
namespace {

TEST_CASE("names go through the rules in order", "[core][name_map]") {
  struct Case {
    NameMap::Rules rules;
    const char* name;
    const char* mapped;
  };
  const Case cases[] = {
      {{}, "a.b", "a.b"},
      {{{"^transformer\\.", ""}}, "transformer.h.0.weight", "h.0.weight"},
      {{{"^transformer\\.", ""}}, "my.transformer.weight", "my.transformer.weight"},
      {{{"^", "model."}}, "h.0", "model.h.0"},
      {{{"$", ".weight"}}, "h.0", "h.0.weight"},
      {{{"layers\\.([0-9]+)\\.", "h.\\1."}}, "layers.12.fc.bias", "h.12.fc.bias"},
      {{{"a", "b"}, {"b", "c"}}, "aba", "ccc"},
      {{{"x*", "-"}}, "axxb", "-a--b-"},
      {{{"(a)|(b)", "[\\1\\2]"}}, "ab", "[a][b]"},
      {{{"/", "\\\\"}}, "a/b", "a\\b"},
      {{{"^a|b", "-"}}, "aab", "-a-"},
      {{{"(a|ab)(c|bcd)?", "[\\1]"}}, "abcd", "[a]"},  // POSIX: the longest of the leftmost
      {{{"q*", "."}}, "\xC3\xA9", ".\xC3\xA9."},       // not into the midst of a character
      {{{"gamma$", "weight"}, {"beta$", "bias"}}, "ln.beta", "ln.bias"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name, c.mapped);
    CHECK(NameMap::make(c.rules).value()(c.name) == c.mapped);
  }
}

TEST_CASE("a rule that would not mean what it says is refused", "[core][name_map]") {
  struct Case {
    const char* pattern;
    const char* replacement;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"h\\.\\d+", "", "\"h\\.\\d+\" uses \\d, which POSIX extended expressions do not support"},
      {"(?:a)", "", "\"(?:a)\" uses (?, which POSIX extended expressions do not support"},
      {"a.*?b", "", "\"a.*?b\" uses *?, which POSIX extended expressions do not support"},
      {"(a", "", "\"(a\" is not a regular expression: missing ) at \"(a\""},
      {"", "x", "an empty pattern matches everywhere"},
      {"a", "\\1", "\"\\1\" refers to group \\1, but \"a\" has 0"},
      {"a", "b\\.c", "\"b\\.c\" has a backslash that is neither \\1 to \\9 nor \\\\"},
      {"a", "b\\", "\"b\\\" has a backslash that is neither \\1 to \\9 nor \\\\"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.pattern, c.replacement);
    const auto made = NameMap::make({{c.pattern, c.replacement}});
    REQUIRE_FALSE(made.ok());
    CHECK(made.failure().message == c.message);
    CHECK_FALSE(made.failure().hint.empty());
  }
}

TEST_CASE("no expression costs more than its text is long", "[core][pattern][21]") {
  const std::string deep = std::string(30'000, '(') + "a" + std::string(30'000, ')');
  const std::string text(300'000, 'a');
  CHECK(Pattern::make("((a?){255}){255}").failure().message ==
        "\"((a?){255}){255}\" is not a regular expression: invalid repetition size at \"{255}\"");
  CHECK(Pattern::make("((((a{1,255}){1,255}){1,255}){1,255})").failure().hint ==
        "a repetition counts to at most 1000, multiplied by those around it");
  CHECK(Pattern::make(deep).value().is_in(text));
  CHECK_FALSE(Pattern::make("(a|b)*c").value().is_in(text));
  CHECK_FALSE(Pattern::make("([^b]{1,25}){1,40}b").value().is_in(text));
}

TEST_CASE("a star stands for any text", "[core][name_map]") {
  CHECK(matches_wildcard("h.*.bias", "h.0.attn.bias"));
  CHECK(matches_wildcard("*", ""));
  CHECK(matches_wildcard("a*a", "aa"));
  CHECK_FALSE(matches_wildcard("a*a", "a"));
  CHECK_FALSE(matches_wildcard("h.*", "wte.weight"));
  CHECK_FALSE(matches_wildcard("head", "head.weight"));
}

}  // namespace
}  // namespace runner::core
