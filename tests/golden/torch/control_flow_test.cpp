// Accelerate's search for a batch that fits, what it takes for a lack of memory, its triggers, and the shapes that its
// debug mode compares, case by case.

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>

#include "runner/core/error.h"
#include "runner/distributed/collectives.h"
#include "runner/distributed/pytree.h"
#include "runner/train/experiment/out_of_memory.h"
#include "tests/support/golden.h"
#include "tests/support/torch/ranks_torch.h"

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

bool counts_as_out_of_memory(const std::string& error_class, const std::string& text) {
  if (error_class == "RuntimeError") {
    const bool of_torch = is_out_of_memory(c10::Error({__func__, __FILE__, __LINE__}, text));
    CHECK(of_torch == is_out_of_memory(std::runtime_error(text)));
    return of_torch;
  }
  if (error_class == "OutOfMemoryError")
    return is_out_of_memory(c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, text));
  return is_out_of_memory(std::invalid_argument(text));  // ValueError and the like
}

std::vector<bool> fired_triggers(const Json& input, distributed::ProcessGroup& group) {
  const auto set_at = input.at("set_at").at(static_cast<std::size_t>(group.rank())).get<std::vector<int>>();
  distributed::Trigger trigger;
  std::vector<bool> fired;
  for (int step = 0; step < input.at("steps").get<int>(); ++step) {
    if (std::find(set_at.begin(), set_at.end(), step) != set_at.end()) trigger.set();
    fired.push_back(trigger.check(group, "a trigger"));
  }
  return fired;
}

/// Zeros of a shape, or of each shape of a list or mapping.
distributed::Pytree zeros_of(const Json& shape) {
  if (shape.is_array() && !shape.empty() && shape.front().is_structured()) {
    distributed::Pytree::List list;
    for (const Json& item : shape) list.push_back(zeros_of(item));
    return {std::move(list)};
  }
  if (shape.is_array()) return {at::zeros(shape.get<std::vector<std::int64_t>>())};
  distributed::Pytree::Mapping mapping;
  for (const auto& [key, item] : shape.items()) mapping.emplace_back(key, zeros_of(item));
  return {std::move(mapping)};
}

std::string debug_error(const Json& input, distributed::ProcessGroup& group) {
  const std::string operation = input.at("operation");
  const auto mine = zeros_of(input.at("shapes").at(static_cast<std::size_t>(group.rank())));
  try {
    if (operation == "gather") distributed::gather(group, mine, "a test");
    if (operation == "reduce") distributed::reduce(group, mine, distributed::Reduction::kSum, "a test");
    if (operation == "broadcast") distributed::broadcast(group, mine, 0, "a test");
  } catch (const core::RunError& error) {
    return error.what();
  }
  return "";
}

void check_debug_error(const std::string& error, const Json& input, const Json& expected) {
  INFO(error);
  if (expected.at("error").is_null()) {
    CHECK(error.empty());
    return;
  }
  // "Process 0: {'a': [2]}" is "rank 0: gather of a test, {a: float [2]}" here.
  CHECK(expected.at("per_process").size() == input.at("shapes").size());
  std::size_t from = 0;
  for (std::size_t rank = 0; rank < input.at("shapes").size(); ++rank) {
    const std::string wanted = "rank " + std::to_string(rank) + ": " + input.at("operation").get<std::string>() +
                               " of a test, " + distributed::description_of(zeros_of(input.at("shapes").at(rank)));
    INFO(wanted);
    from = error.find(wanted, from);
    CHECK(from != std::string::npos);
  }
}

bool has_ranks(const tests::GoldenCase& c) { return c.kind == "trigger" || c.kind == "debug_shape"; }

/// What a rank finds in one case: a list of flags or a message.
Json found_in(const tests::GoldenCase& c, distributed::ProcessGroup& group) {
  return c.kind == "trigger" ? Json(fired_triggers(c.input, group)) : Json(debug_error(c.input, group));
}

}  // namespace

TEST_CASE("Accelerate's control flow holds on every vector", "[golden][control_flow]") {
  tests::for_each_case("control_flow", [](const tests::GoldenCase& c) {
    if (c.kind == "find_executable_batch_size") {
      check_search(c.input, c.expected);
    } else if (c.kind == "oom_classification") {
      CHECK(counts_as_out_of_memory(c.input.at("error_class"), c.input.at("text")) ==
            c.expected.at("retry").get<bool>());
    } else {
      return has_ranks(c);  // below
    }
    return true;
  });
}

TEST_CASE("triggers and shapes are compared over ranks as Accelerate does", "[golden][control_flow]") {
  const std::vector<tests::GoldenCase> cases = tests::golden::read_topic("control_flow");
  std::set<int> sizes;
  for (const tests::GoldenCase& c : cases) {
    if (has_ranks(c)) sizes.insert(c.input.at("num_processes").get<int>());
  }
  for (const int size : sizes) {
    // Assertions are for one thread: ranks report, the test judges. A group outlives what it refused.
    std::vector<std::vector<Json>> found(cases.size(), std::vector<Json>(static_cast<std::size_t>(size)));
    const auto fits = [&](const tests::GoldenCase& c) { return has_ranks(c) && c.input.at("num_processes") == size; };
    tests::run_ranks({.size = size, .debug = true}, [&](distributed::ProcessGroup& group) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (fits(cases[i])) found[i][static_cast<std::size_t>(group.rank())] = found_in(cases[i], group);
      }
    });
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!fits(cases[i])) continue;
      INFO(cases[i].kind << " " << cases[i].name);
      for (const Json& of_rank : found[i]) {
        if (cases[i].kind == "trigger") {
          CHECK(of_rank == cases[i].expected.at("fired"));
        } else {
          check_debug_error(of_rank, cases[i].input, cases[i].expected);
        }
      }
    }
  }
}

}  // namespace runner::train
