#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tokenizer/text/known_patterns.h"
#include "components/tokenizer/text/pattern.h"
#include "runner/core/error.h"
#include "tests/support/paths.h"

using components::tokenizer::make_general_pattern;
using components::tokenizer::make_pattern;
using components::tokenizer::Pattern;
using components::tokenizer::Range;

namespace {

const char* const kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> found(const Pattern& pattern, const std::string& text) {
  std::vector<Range> matches;
  pattern.find(text, matches);
  std::vector<std::string> parts;
  for (const Range& match : matches) parts.push_back(text.substr(match.begin, match.end - match.begin));
  return parts;
}

std::string problem_of(const std::string& regex, const std::string& text = "") {
  try {
    found(*make_general_pattern(regex, "tokenizer.json: pre_tokenizer.pattern.Regex"), text);
    return "";
  } catch (const runner::core::RunError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the code for known patterns matches what they match", "[tokenizer][pattern]") {
  const auto regex = GENERATE(as<std::string>(), components::tokenizer::kGpt2Pattern, kLlama3, kQwen2);
  INFO(regex);
  const auto known = components::tokenizer::known_pattern(regex);
  REQUIRE(known != nullptr);
  const auto general = make_general_pattern(regex, "");
  const std::string path = tests::source_dir() + "/tests/components/tokenizer/recorded/texts.json";
  for (const auto& text : nlohmann::json::parse(std::ifstream(path)).get<std::vector<std::string>>()) {
    INFO(text);
    REQUIRE(found(*known, text) == found(*general, text));
  }
  // Every text of these parts, up to five of them.
  const std::vector<std::string> parts = {" ", "a", "1", "'", "s", "L", "\n", "\r", "\t", "!", "\xC2\xA0", "\xC5\xBF"};
  for (std::size_t number = 0; number < 12 * 12 * 12 * 12 * 12; ++number) {
    std::string text;
    for (std::size_t left = number, i = 0; i < 5; ++i, left /= parts.size()) text += parts[left % parts.size()];
    if (found(*known, text) != found(*general, text)) FAIL("different on " << text);
  }
}

TEST_CASE("patterns are read as Oniguruma reads them", "[tokenizer][pattern]") {
  using Texts = std::vector<std::string>;
  struct Case {
    const char* regex;
    std::string text;
    Texts parts;
  };
  const Case cases[] = {
      {"[\\u0041-\\u0043]+", "xABCx", {"ABC"}},
      {"\\h+", "g0aFg", {"0aF"}},
      {"(?m:a.b)", "a\nb", {"a\nb"}},
      {"a.b", "a\nb", {}},
      {"^b$", "a\nb\nc", {"b"}},
      {"[]a]+", "x]a]", {"]a]"}},
      {"[[:alpha:]]+", "1\xC3\xA9z", {"\xC3\xA9z"}},
      {"x*", "axb", {"", "x", ""}},  // nothing where a match has just ended
  };
  for (const Case& c : cases) {
    INFO(c.regex);
    CHECK(found(*make_pattern(c.regex, ""), c.text) == c.parts);
  }
}

TEST_CASE("a wrong pattern is refused with its place", "[tokenizer][pattern]") {
  CHECK(problem_of("a(b") ==
        "tokenizer.json: pre_tokenizer.pattern.Regex: the pattern \"a(b\" is wrong at byte 3: missing closing "
        "parenthesis");
  CHECK(problem_of("[a&&b]") ==
        "tokenizer.json: pre_tokenizer.pattern.Regex: the pattern \"[a&&b]\" has && in brackets, which roux does not "
        "know");
  CHECK(problem_of(std::string(10'001, 'a')) ==
        "tokenizer.json: pre_tokenizer.pattern.Regex: a pattern of 10001 bytes, more than 10000");
}

TEST_CASE("a pattern that takes exponential time ends as an error", "[tokenizer][pattern]") {
  CHECK(problem_of("(a+)+$", std::string(40, 'a') + "!") ==
        "tokenizer.json: pre_tokenizer.pattern.Regex: the pattern takes too long on this text, from byte 0 on");
}
