#include "runner/core/json.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <iterator>

namespace runner::core {
namespace {

TEST_CASE("numbers survive the way through JSON to the last bit", "[core][json]") {
  const double values[] = {
      0.1, 1.0, -0.0, 1e300, 5e-324, 1.7976931348623157e308, 0.30000000000000004, 123456789012345680.0};
  Node list = Node::sequence();
  for (const double value : values) list.items().push_back(Node::floating(value));
  const Node back = parse_json(to_json(list)).value();
  for (std::size_t i = 0; i < std::size(values); ++i) {
    CAPTURE(values[i]);
    REQUIRE(back.items()[i].kind() == Node::Kind::kFloat);
    const double value = back.items()[i].as_double();
    CHECK(std::memcmp(&value, &values[i], sizeof value) == 0);
  }
}

TEST_CASE("JSON that cannot be taken as it stands is refused with the reason", "[core][json]") {
  struct Case {
    const char* text;
    const char* why;
  };
  static constexpr Case cases[] = {
      {"", "it is not valid JSON from byte 1 on"},
      {"{\"a\": 1", "it is not valid JSON from byte 8 on"},
      {"{\"a\": 1, \"a\": 2}", "the key \"a\" appears twice"},
      {"[9223372036854775808]", "the integer 9223372036854775808 does not fit into 64 bits"},
      {"[123456789012345678901234567890]", "the integer 123456789012345678901234567890 does not fit into 64 bits"},
      {"[[[[1]]]]", "it is nested deeper than 3 levels"},
      {"[1, 2, 3, 4, 5, 6, 7, 8]", "it holds more than 8 values"},
      {"\"\xff\"", "it is not valid JSON from byte 2 on: it is not UTF-8 there, perhaps Latin-1"},
      {"[\"a\\ud83db\"]", "it is not valid JSON from byte 10 on: half of a surrogate pair, \\uD800 to \\uDFFF"},
      {"[\"\\\\ud83d\", x]", "it is not valid JSON from byte 13 on: texts and keys stand in double quotes"},
      {"{a: 1}", "it is not valid JSON from byte 2 on: texts and keys stand in double quotes"},
      {"[\"caf\xe9\"]", "it is not valid JSON from byte 7 on: it is not UTF-8 there, perhaps Latin-1"},
      {"{\xe2\x80\x9c"
       "a\": 1}",
       "it is not valid JSON from byte 2 on: texts stand in straight double quotes"},
      {"{\"a\": \"}\"} {\"a\": 2}", "it is not valid JSON from byte 12 on: more text follows the value"},
      {"[1] // one", "it is not valid JSON from byte 5 on: more text follows the value"},
      {"[1, // one\n 2]", "it is not valid JSON from byte 5 on: JSON has no comments"},
      {"[\"C:\\Users\"]", "it is not valid JSON from byte 6 on: no escape is called \\U; a backslash itself is \\\\"},
      {"[-012]", "it is not valid JSON from byte 5 on: a number has no 0 in front of its digits"},
      {"[10 12]", "it is not valid JSON from byte 6 on"},
      {"[NaN]", "it is not valid JSON from byte 2 on: JSON has no NaN; write null"},
      {"[-Infinity]", "it is not valid JSON from byte 3 on: JSON has no Infinity; write null"},
      {"[None]", "it is not valid JSON from byte 2 on: None is Python's word, write null"},
      {"{'a': 1}", "it is not valid JSON from byte 2 on: texts and keys stand in double quotes"},
      {"[1, 2,]", "it is not valid JSON from byte 7 on: a comma stands before the end of a list or object"},
      {"[\"a\nb\"]",
       "it is not valid JSON from byte 4 on: a text holds no line breaks, tabs and other control characters but as "
       "\\n, "
       "\\t, \\u0000"},
      {"\xFF\xFE{", "it is not valid JSON from byte 1 on: it is UTF-16 or another encoding, write UTF-8"},
      {"version https://git-lfs.github.com/spec/v1",
       "it is not valid JSON from byte 1 on: it is a pointer of Git LFS; run `git lfs pull`"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Result<Node> result = parse_json(c.text, {3, 8});
    REQUIRE_FALSE(result.ok());
    CHECK(result.failure().message == c.why);
  }
  CHECK(parse_json("[[[1]]]", {3, 8}).ok());
}

TEST_CASE("a number keeps the way it was written, for messages", "[core][json]") {
  CHECK(parse_json("[3e-4]").value().items()[0].scalar_text() == "3e-4");
}

}  // namespace
}  // namespace runner::core
