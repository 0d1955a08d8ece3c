// Accelerate's search for a batch that fits, what it takes for a lack of memory, its triggers, and the shapes that its
// debug mode compares, case by case.

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <stdexcept>

#include "runner/distributed/collectives.h"
#include "runner/distributed/nested.h"
#include "runner/train/shortage.h"
#include "tests/support/golden.h"
#include "tests/support/ranks_torch.h"

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

void check_trigger(const Json& input, const Json& expected) {
  const int size = input.at("num_processes"), steps = input.at("steps");
  std::vector<std::vector<bool>> fired(static_cast<std::size_t>(size));
  tests::run_ranks({size}, [&](distributed::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const auto set_at = input.at("set_at").at(rank).get<std::vector<int>>();
    distributed::Trigger trigger;
    for (int step = 0; step < steps; ++step) {
      if (std::find(set_at.begin(), set_at.end(), step) != set_at.end()) trigger.set();
      fired[rank].push_back(trigger.check(group, "a trigger"));
    }
  });
  for (const auto& of_rank : fired) CHECK(Json(of_rank) == expected.at("fired"));
}

/// Zeros of a shape, or of each shape of a mapping.
distributed::Nested zeros_of(const Json& shape) {
  if (shape.is_array()) return {at::zeros(shape.get<std::vector<std::int64_t>>())};
  distributed::Nested::Mapping mapping;
  for (const auto& [key, item] : shape.items()) mapping.emplace_back(key, zeros_of(item));
  return {std::move(mapping)};
}

void check_debug_shape(const Json& input, const Json& expected) {
  const std::string operation = input.at("operation");
  const auto errors =
      tests::errors_of_ranks({.size = input.at("num_processes"), .debug = true}, [&](distributed::ProcessGroup& group) {
        const auto mine = zeros_of(input.at("shapes").at(static_cast<std::size_t>(group.rank())));
        if (operation == "gather") distributed::gather(group, mine, "a test");
        if (operation == "reduce") distributed::reduce(group, mine, distributed::Reduction::kSum, "a test");
        if (operation == "broadcast") distributed::broadcast(group, mine, 0, "a test");
      });
  for (const std::string& error : errors) {
    INFO(error);
    if (expected.at("error").is_null()) {
      CHECK(error.empty());
      continue;
    }
    // "Process 0: {'a': [2]}" is "rank 0: gather of a test, {a: float [2]}" here.
    std::size_t from = 0;
    for (const Json& line : expected.at("per_process")) {
      const std::string text = std::regex_replace(line.get<std::string>(), std::regex("'"), "");
      const std::size_t colon = text.find(": ");
      const std::string shape = std::regex_replace(text.substr(colon + 2), std::regex(R"(\[)"), "float [");
      const std::string wanted =
          "rank" + text.substr(text.find(' '), colon - text.find(' ')) + ": " + operation + " of a test, " + shape;
      from = error.find(wanted, from);
      INFO(wanted);
      CHECK(from != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("Accelerate's control flow holds on every vector", "[golden][control_flow]") {
  tests::for_each_case("control_flow", [](const tests::GoldenCase& c) {
    if (c.kind == "find_executable_batch_size") {
      check_search(c.input, c.expected);
    } else if (c.kind == "oom_classification") {
      CHECK(counts_as_shortage(c.input.at("error_class"), c.input.at("text")) == c.expected.at("retry").get<bool>());
    } else if (c.kind == "trigger") {
      check_trigger(c.input, c.expected);
    } else if (c.kind == "debug_shape") {
      check_debug_shape(c.input, c.expected);
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace runner::train
