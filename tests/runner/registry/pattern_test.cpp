#include "runner/registry/pattern.h"

#include <catch2/catch.hpp>

namespace runner::registry {
namespace {

TEST_CASE("a pattern reads the same for editors and for the program", "[registry][pattern]") {
  struct Case {
    const char* pattern;
    bool accepted;
  };
  static constexpr Case cases[] = {
      {"^[a-z]+$", true}, {"^(a|b){1,2}$", true}, {"^\\.x$", true}, {"^[^\"\r\n]$", true},
      {"a\\\\b", true},   {"^\\d+$", false},      {"(?:a)", false}, {"a*?b", false},
      {"[", false},       {"(", false},           {"\\w", false},   {"(a)\\1", false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.pattern) { CHECK(is_pattern(c.pattern) == c.accepted); }
  }
}

TEST_CASE("text of any length is matched", "[registry][pattern]") {
  CHECK(matches_pattern(std::string(1000000, 'a'), "^(a|b)*$"));
  CHECK_FALSE(matches_pattern(std::string(1000000, 'a') + "c", "^(a|b)*$"));
  CHECK_FALSE(matches_pattern(std::string("a\0b", 3), "^a"));
  CHECK(matches_pattern("xay", "a"));
}

}  // namespace
}  // namespace runner::registry
