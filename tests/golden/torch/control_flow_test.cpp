// Accelerate's search for a batch that fits, and what it takes for a lack of memory, case by case.

#include <c10/util/Exception.h>

#include <catch2/catch.hpp>
#include <stdexcept>

#include "runner/train/shortage.h"
#include "tests/support/golden.h"

namespace runner::train {
namespace {

using tests::golden::Json;

void check_search(const Json& input, const Json& expected) {
  const std::string name = input.at("policy");
  const MicroBatchPolicy policy(name == "default" ? "shrink" : name);
  const std::int64_t start = input.at("starting_batch_size");
  const std::int64_t fits = input.at("fits").is_null() ? 0 : input.at("fits").get<std::int64_t>();
  std::vector<std::int64_t> attempts;
  std::int64_t size = start;
  for (; size > 0; size = policy.next(size)) {
    attempts.push_back(size);
    if (size <= fits) break;
  }
  CHECK(Json(attempts) == expected.at("attempts"));
  if (size == 0) {
    CHECK(expected.at("result") == "RuntimeError");
  } else {
    CHECK(expected.at("result") == size);
    if (expected.contains("effective_accumulation")) CHECK(expected.at("effective_accumulation") == start / size);
  }
}

bool counts_as_shortage(const std::string& error_class, const std::string& text) {
  if (error_class == "RuntimeError") {
    const bool of_torch = is_out_of_memory(c10::Error({__func__, __FILE__, __LINE__}, text));
    CHECK(of_torch == is_out_of_memory(std::runtime_error(text)));
    return of_torch;
  }
  if (error_class == "OutOfMemoryError")
    return is_out_of_memory(c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, text));
  return is_out_of_memory(std::invalid_argument(text));  // ValueError and the like
}

}  // namespace

TEST_CASE("the micro-batch shrinks as Accelerate's batch does", "[golden][control_flow]") {
  tests::for_each_case("control_flow", [](const tests::GoldenCase& c) {
    if (c.kind == "find_executable_batch_size") {
      check_search(c.input, c.expected);
    } else if (c.kind == "oom_classification") {
      CHECK(counts_as_shortage(c.input.at("error_class"), c.input.at("text")) == c.expected.at("retry").get<bool>());
    } else {
      return false;  // triggers and shapes across processes: another issue
    }
    return true;
  });
}

}  // namespace runner::train
