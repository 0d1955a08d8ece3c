// Sizes as Accelerate reads them, topic sizes.

#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "runner/artifact/safetensors_layout.h"
#include "runner/core/units.h"
#include "tests/support/golden.h"

namespace {

/// A recipe's `12` and `"12"` are the same text to us, and a number alone is bytes; Accelerate refuses the text.
constexpr const char* kBareNumber = "parse_19";

void check_parse_size(const tests::GoldenCase& c) {
  const auto& size = c.input.at("size");
  const auto bytes = runner::core::parse_bytes(size.is_string() ? size.get<std::string>() : size.dump());
  if (c.name == kBareNumber) {
    CHECK(bytes.value() == 12);
  } else if (c.expected.contains("error")) {
    CHECK_FALSE(bytes.ok());
  } else {
    CHECK(bytes.value() == c.expected.at("bytes").get<std::int64_t>());
  }
}

/// False for what safetensors has no word for, and for bool: a byte on the disk, an eighth of one to Accelerate.
bool check_dtype_size(const tests::GoldenCase& c) {
  static const std::map<std::string, std::string> words{{"float64", "F64"}, {"float32", "F32"}, {"float16", "F16"},
                                                        {"int64", "I64"},   {"uint8", "U8"},    {"fp8", "F8_E4M3"}};
  const auto word = words.find(c.input.at("dtype"));
  if (word == words.end()) return false;
  CHECK(static_cast<double>(runner::artifact::safetensors_item_bytes(word->second)) ==
        c.expected.at("size").get<double>());
  return true;
}

TEST_CASE("sizes read as Accelerate reads them", "[golden][sizes]") {
  tests::for_each_case("sizes", [](const tests::GoldenCase& c) {
    CAPTURE(c.name);
    if (c.kind == "parse_size") {
      check_parse_size(c);
      return true;
    }
    return c.kind == "dtype_size" && check_dtype_size(c);
  });
}

}  // namespace
