#include "runner/core/scalar.h"

#include <catch2/catch.hpp>

using runner::core::Node;
using runner::core::resolve_scalar;

TEST_CASE("plain scalars follow the core schema of YAML 1.2", "[core][scalar]") {
  struct Case {
    const char* text;
    Node::Kind kind;
    const char* json;
  };
  using Kind = Node::Kind;
  static constexpr Case cases[] = {
      {"", Kind::kNull, "null"},
      {"~", Kind::kNull, "null"},
      {"Null", Kind::kNull, "null"},
      {"nULL", Kind::kString, "\"nULL\""},
      {"true", Kind::kBool, "true"},
      {"False", Kind::kBool, "false"},
      {"no", Kind::kString, "\"no\""},
      {"on", Kind::kString, "\"on\""},
      {"12", Kind::kInteger, "12"},
      {"-3", Kind::kInteger, "-3"},
      {"+7", Kind::kInteger, "7"},
      {"0o17", Kind::kInteger, "15"},
      {"0x1F", Kind::kInteger, "31"},
      {"017", Kind::kInteger, "17"},
      {"1_000", Kind::kString, "\"1_000\""},
      {"1e-4", Kind::kFloat, "1e-4"},
      {"1.", Kind::kFloat, "1.0"},
      {".5", Kind::kFloat, "0.5"},
      {"+1.5E3", Kind::kFloat, "1500.0"},
      {"1e", Kind::kString, "\"1e\""},
      {".", Kind::kString, "\".\""},
      {"-.inf", Kind::kFloat, "\"-inf\""},
      {".NaN", Kind::kFloat, "\"nan\""},
      {"inf", Kind::kString, "\"inf\""},
      {"5e-324", Kind::kFloat, "5e-324"},
      {"0e-999", Kind::kFloat, "0.0"},
      {"0x", Kind::kString, "\"0x\""},
      {"0xZZ", Kind::kString, "\"0xZZ\""},
      {"12:30", Kind::kString, "\"12:30\""},
      {"2024-01-01", Kind::kString, "\"2024-01-01\""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Node node = resolve_scalar(c.text).value();
    CHECK(node.kind() == c.kind);
    CHECK(to_json(node, -1) == c.json);
  }
}

TEST_CASE("numbers that fit nowhere are refused", "[core][scalar]") {
  CHECK(resolve_scalar("99999999999999999999").failure().message ==
        "the integer 99999999999999999999 does not fit into 64 bits");
  CHECK(resolve_scalar("1e-400").failure().message == "the number 1e-400 does not fit into 64 bits");
  CHECK(resolve_scalar("-1.5E-999").failure().hint ==
        "the smallest is about 4.9e-324; write 0 for zero, or put it in quotes if it is text");
  CHECK(resolve_scalar("1e999").failure().message == "the number 1e999 does not fit into 64 bits");
}
