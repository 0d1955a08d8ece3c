// Sizes as Accelerate reads them, topic sizes.

#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "runner/artifact/safetensors_layout.h"
#include "runner/core/units.h"
#include "runner/pretrained/module_sizes.h"
#include "tests/golden/refused_sizes.h"
#include "tests/support/golden.h"

namespace {

/// "", or why a size is read that Accelerate refuses.
std::string check_parse_size(const tests::GoldenCase& c) {
  const auto& size = c.input.at("size");
  const auto bytes = runner::core::parse_bytes(size.is_string() ? size.get<std::string>() : size.dump());
  if (!c.expected.contains("error")) {
    CHECK(bytes.value() == c.expected.at("bytes").get<std::int64_t>());
    return "";
  }
  const std::string reason = tests::golden::reason_to_read(size);
  CHECK(bytes.ok() == !reason.empty());
  return reason;
}

/// False for what safetensors has no word for, and for bool: a byte on the disk, an eighth of one to Accelerate.
bool check_dtype_size(const tests::GoldenCase& c) {
  static const std::map<std::string, std::string> words{{"float64", "F64"},   {"float32", "F32"}, {"float16", "F16"},
                                                        {"bfloat16", "BF16"}, {"int64", "I64"},   {"int8", "I8"},
                                                        {"uint8", "U8"},      {"fp8", "F8_E4M3"}};
  const auto word = words.find(c.input.at("dtype"));
  if (word == words.end()) return false;
  CHECK(static_cast<double>(runner::artifact::safetensors_item_bytes(word->second)) ==
        c.expected.at("size").get<double>());
  return true;
}

/// What of an estimate differs on purpose; "": nothing.
std::string check_estimate(const tests::GoldenCase& c) {
  using runner::pretrained::ModuleSizes;
  ModuleSizes sizes;
  sizes.total = c.input.at("total_bytes").get<std::int64_t>();
  sizes.largest = c.input.at("largest_layer_bytes").get<std::int64_t>();
  for (const auto& [type, expected] : c.expected.at("per_dtype").items()) {
    CAPTURE(type);
    const auto found = runner::pretrained::sizes_in(type, sizes);
    const bool halves = type == "bfloat16";  // exceptions.json
    // The vectors have nine digits.
    CHECK(found.total == Approx(expected.at("total").get<double>() / (halves ? 2 : 1)).epsilon(1e-8));
    CHECK(found.largest == Approx(expected.at("largest_layer").get<double>() / (halves ? 2 : 1)).epsilon(1e-8));
    const auto& training = expected.at("training");
    REQUIRE(found.adam.has_value() == (training.at("step").get<std::int64_t>() >= 0));
    if (!found.adam) continue;
    CHECK(found.adam->model == training.at("model").get<std::int64_t>());
    CHECK(found.adam->gradients == training.at("gradients").get<std::int64_t>());
    CHECK(found.adam->optimizer == training.at("optimizer").get<std::int64_t>());
    CHECK(found.adam->step == training.at("step").get<std::int64_t>());
  }
  return "the sizes of bfloat16";
}

TEST_CASE("sizes read as Accelerate reads them", "[golden][sizes]") {
  tests::golden::Coverage coverage("sizes");
  for (const tests::GoldenCase& c : tests::golden::read_topic("sizes")) {
    CAPTURE(c.kind, c.name);
    std::string missing;
    if (c.kind == "parse_size") {
      missing = check_parse_size(c);
    } else if (c.kind == "estimate") {
      coverage.checked(c.kind);
      missing = check_estimate(c);
    } else if (c.kind == "dtype_size") {
      if (!check_dtype_size(c)) missing = c.input.at("dtype");
    } else {
      coverage.not_covered(c.kind);
      continue;
    }
    if (missing.empty()) {
      coverage.checked(c.kind);
    } else {
      coverage.not_covered(c.kind, missing);
    }
  }
  coverage.finish();
}

}  // namespace
