#include "components/generation/stop_strings.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using components::generation::StopStrings;

/// What is shown after each piece, and at the end.
std::vector<std::string> shown(StopStrings stops, const std::vector<std::string>& pieces) {
  std::vector<std::string> parts;
  for (const std::string& piece : pieces) parts.push_back(stops.feed(piece));
  parts.push_back(stops.finish());
  return parts;
}

using Parts = std::vector<std::string>;

}  // namespace

TEST_CASE("a stop that spans pieces is found, and what may become one is held back", "[generation][stop_strings]") {
  CHECK(shown(StopStrings({"END"}), {"the E", "N", "D of it", "more"}) == Parts{"the ", "", "END", "", ""});
  CHECK(shown(StopStrings({"END"}), {"the E", "N", "T"}) == Parts{"the ", "", "ENT", ""});
  CHECK(shown(StopStrings({"END"}), {"EEN", "END"}) == Parts{"E", "ENEND", ""});
  CHECK(shown(StopStrings({"END"}), {"at last E"}) == Parts{"at last ", "E"});
  CHECK(shown(StopStrings({"aab"}), {"a", "a", "a", "b"}) == Parts{"", "", "a", "aab", ""});
  CHECK(shown(StopStrings(Parts{}), {"a", "b"}) == Parts{"a", "b", ""});
  CHECK(shown(StopStrings(Parts{""}), {"a", "b"}) == Parts{"a", "b", ""});
}

TEST_CASE("of several stops the one that is whole first counts", "[generation][stop_strings]") {
  CHECK(shown(StopStrings({"abcd", "bc"}), {"xab", "cd"}) == Parts{"x", "abc", ""});
  CHECK(shown(StopStrings({"bc", "abcd"}), {"xabcd"}) == Parts{"xabc", ""});
  CHECK(shown(StopStrings({"\n\n", "User:"}), {"well\n", "User", ": hi"}) == Parts{"well", "\n", "User:", ""});
}

TEST_CASE("a character that is not whole is held back", "[generation][stop_strings]") {
  CHECK(shown(StopStrings(Parts{}), {"a\xE2", "\x82", "\xAC."}) == Parts{"a", "", "\xE2\x82\xAC.", ""});
  CHECK(shown(StopStrings(Parts{}), {"\xF0\x9F\x98", "\x80"}) == Parts{"", "\xF0\x9F\x98\x80", ""});
  CHECK(shown(StopStrings({"\xE2\x82\xAC"}), {"5 \xE2\x82", "\xAC now"}) == Parts{"5 ", "\xE2\x82\xAC", ""});
  CHECK(shown(StopStrings(Parts{}), {"a\xE2\x82"}) == Parts{"a", "\xEF\xBF\xBD"});
  CHECK(shown(StopStrings(Parts{}), {"a\x80\x80\x80\x80"}) == Parts{"a\x80\x80\x80\x80", ""});  // no character begins
}

TEST_CASE("how text is cut into pieces changes nothing", "[generation][stop_strings]") {
  const std::string text =
      "ab\xC3\xA9"
      "abab<|e|<|end|>tail";
  const Parts stops = {"<|end|>", "tail"};
  for (std::size_t first = 0; first < text.size(); ++first) {
    for (std::size_t second = first; second < text.size(); ++second) {
      StopStrings matcher(stops);
      std::string all = matcher.feed(text.substr(0, first));
      all += matcher.feed(text.substr(first, second - first));
      all += matcher.feed(text.substr(second));
      CHECK(all == text.substr(0, text.size() - 4));
      CHECK(matcher.stopped());
      CHECK(matcher.finish().empty());
    }
  }
}
