#include "runner/core/text/text.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

namespace {

using namespace runner::core;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Named {
  std::string name;
};

TEST_CASE("lists are joined", "[text]") {
  CHECK(joined(std::vector<std::string>{}).empty());
  CHECK(joined(std::vector<std::string>{"a", "b", "c"}) == "a, b, c");
  CHECK(joined(std::vector<std::string>{"a", "b"}, " ") == "a b");
  CHECK(joined(std::vector<std::int64_t>{2, -1}, ",") == "2,-1");
  CHECK(joined(std::vector<Named>{{"x"}, {"y"}}, ", ", &Named::name) == "x, y");
}

TEST_CASE("numbers are short or exact, and NaN has no sign", "[text]") {
  CHECK(short_number(1.0 / 3.0, 4) == "0.3333");
  CHECK(short_number(12345678, 3) == "1.23e+07");
  CHECK(short_number(-kNan, 4) == "nan");
  CHECK(short_number(-kInf, 4) == "-inf");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(1e30) == "1e+30");
  CHECK(number_text(-kNan) == "nan");
  CHECK(number_text(-kInf) == "-inf");
}

TEST_CASE("counts have their noun, and large ones separators", "[text]") {
  CHECK(counted(1, "step", "steps") == "1 step");
  CHECK(counted(12345, "step", "steps") == "12345 steps");
  CHECK(counted_large(12345, "file", "files") == "12,345 files");
  CHECK(with_commas(-1234567) == "-1,234,567");
  CHECK(with_commas(-123) == "-123");
}

TEST_CASE("letters, ends and quotes", "[text]") {
  CHECK(lower("ÄB-c1") == "Äb-c1");
  CHECK(upper("äb-c1") == "äB-C1");
  CHECK(trimmed(" \ta b\t ") == "a b");
  CHECK(trimmed(" \ta ", " ") == "\ta");
  CHECK(trimmed("  ").empty());
  CHECK(in_quotes("a\"b") == "\"a\"b\"");
  CHECK(csv_field("a b") == "a b");
  CHECK(csv_field("a,\"b\"") == "\"a,\"\"b\"\"\"");
  CHECK(csv_field("a,b", '\t') == "a,b");
  CHECK(csv_field("a\tb", '\t') == "\"a\tb\"");
}

}  // namespace
