// Accelerate's collectives, case by case, on as many ranks as the case has.

#include "runner/distributed/collectives.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/distributed/pytree.h"
#include "runner/train/data/batch_shards.h"
#include "runner/train/strategy/local_sgd.h"
#include "tests/support/golden.h"
#include "tests/support/torch/ranks_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

using namespace runner::distributed;
using runner::core::Node;
using tests::golden::Json;

constexpr const char* kSite = "a test";

bool is_tensor(const Json& json) { return json.is_object() && json.size() == 1 && json.contains("t"); }

bool are_whole(const Json& json) {
  if (!json.is_array()) return json.is_number_integer();
  return std::all_of(json.begin(), json.end(), are_whole);
}

Node data_of(const Json& json) { return runner::core::parse_json(json.dump()).value(); }

/// `{"t": numbers}` is a tensor, unless there are other keys beside it.
Pytree nested_of(const Json& json) {
  if (is_tensor(json) && !json.at("t").is_object()) {
    const Json& numbers = json.at("t");
    return {are_whole(numbers) ? tests::ids(numbers) : tests::floats(numbers)};
  }
  if (json.is_object()) {
    Pytree::Mapping mapping;
    for (const auto& [key, item] : json.items()) mapping.emplace_back(key, nested_of(item));
    return {std::move(mapping)};
  }
  const bool of_data = !json.is_array() || json.empty() || !json.front().is_structured();
  if (of_data) return {data_of(json)};
  Pytree::List list;
  for (const Json& item : json) list.push_back(nested_of(item));
  return {std::move(list)};
}

Json json_of(const Node& data) { return Json::parse(runner::core::to_json(data, -1)); }

/// A tensor as lists of its numbers, which show its shape.
Json numbers_of(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return tests::to_numbers(tensor).front();
  Json rows = Json::array();
  for (const at::Tensor& row : tensor.unbind()) rows.push_back(numbers_of(row));
  return rows;
}

Json json_of(const Pytree& value) {
  if (value.tensor() != nullptr) return {{"t", numbers_of(*value.tensor())}};
  if (value.data() != nullptr) return json_of(*value.data());
  if (value.list() != nullptr) {
    Json list = Json::array();
    for (const Pytree& item : *value.list()) list.push_back(json_of(item));
    return list;
  }
  Json mapping = Json::object();
  for (const auto& [key, item] : *value.mapping()) mapping[key] = json_of(item);
  return mapping;
}

bool are_near(const Json& got, const Json& expected) {
  if (!expected.is_array()) return tests::golden::differences("t", tests::golden::numbers(got), expected, {}).empty();
  return got.is_array() && std::equal(got.begin(), got.end(), expected.begin(), expected.end(), are_near);
}

bool agree(const Json& got, const Json& expected) {
  if (is_tensor(expected) && !expected.at("t").is_object()) {
    return is_tensor(got) && are_near(got.at("t"), expected.at("t"));
  }
  if (!expected.is_structured()) return got == expected;
  if (got.size() != expected.size() || got.type() != expected.type()) return false;
  for (const auto& [key, item] : expected.items()) {
    if (expected.is_object() && !got.contains(key)) return false;
    if (!agree(expected.is_object() ? got.at(key) : got.at(std::stoul(key)), item)) return false;
  }
  return true;
}

Reduction reduction_of(const std::string& name) {
  if (name == "mean") return Reduction::kMean;
  if (name == "max") return Reduction::kMax;
  return name == "none" ? Reduction::kNone : Reduction::kSum;
}

Json split(const Json& input, const ProcessGroup& group) {
  const Share share{group.rank(), group.size(), input.value("apply_padding", false)};
  try {
    return json_of(split_between_processes(nested_of(input.at("value")), share));
  } catch (const runner::core::RunError& error) {
    return {{"error", "ValueError"}, {"text", error.what()}};
  }
}

/// What each step of a walk over the samples 0, 1, ... gathers.
Json walk(const Json& input, ProcessGroup& group) {
  const std::int64_t samples = input.at("dataset_len"), batch_size = input.at("batch_size");
  const bool drop_last = input.at("drop_last"), as_objects = input.at("use_gather_object");
  std::vector<runner::train::IndexBatch> batches;
  for (std::int64_t from = 0; from < samples; from += batch_size) {
    const std::int64_t count = std::min(batch_size, samples - from);
    if (count < batch_size && drop_last) break;
    batches.emplace_back(static_cast<std::size_t>(count));
    std::iota(batches.back().begin(), batches.back().end(), from);
  }
  const auto mine = runner::train::shard_batches(
      batches,
      {.num_processes = group.size(), .process_index = group.rank(), .batch_size = batch_size, .drop_last = drop_last});
  Json steps = Json::array();
  for (const auto& batch : mine) {
    EpochEnd end;
    end.last_batch = &batch == &mine.back();
    end.remainder = drop_last ? 0 : samples % (batch_size * group.size());
    const Json ids = batch;
    if (as_objects) {
      steps.push_back(json_of(gather_object_for_metrics(group, data_of(ids), end, kSite)));
    } else {
      const Pytree all = gather_for_metrics(group, {tests::ids(ids)}, end, kSite);
      steps.push_back(json_of(all).at("t"));
    }
  }
  return steps;
}

/// A weight that moves by its own step on each rank; after each step, and in the end.
Json local_sgd(const Json& input, ProcessGroup& group) {
  const auto rank = static_cast<std::size_t>(group.rank());
  const std::vector<components::NamedTensor> parameters = {
      {"w", at::full({1}, input.at("w0").get<double>()).set_requires_grad(true)}};
  runner::train::LocalSgd together(group, parameters, input.at("local_sgd_steps"));
  const at::NoGradGuard no_grad;
  const at::Tensor w = parameters.front().tensor;
  Json weights = Json::array();
  for (const Json& delta : input.at("deltas").at(rank)) {
    w.add_(delta.get<double>());
    together.after_step(static_cast<std::int64_t>(weights.size()) + 1);
    weights.push_back(w.item<double>());
  }
  together.average();
  return {{"weights", weights}, {"final", w.item<double>()}};
}

/// What is said of a mapping whose entries are not of one length: the first one, and the first that differs from it.
std::string uneven_message(const Json& mapping) {
  const auto length = [](const Json& item) { return (is_tensor(item) ? item.at("t") : item).size(); };
  const auto text = [&](const std::string& key) { return key + " has " + std::to_string(length(mapping.at(key))); };
  const std::string first = mapping.begin().key();
  for (const auto& [key, item] : mapping.items()) {
    if (length(item) == length(mapping.at(first))) continue;
    return "the entries of a mapping must have equal lengths, but " + text(first) + " items and " + text(key);
  }
  return "";
}

/// What one rank gets; null for a kind that is not known. What an input leaves out is as Accelerate's functions have
/// it.
Json outcome(const std::string& kind, const Json& input, const Json& expected, ProcessGroup& group) {
  const auto mine = [&] { return nested_of(input.at("inputs").at(static_cast<std::size_t>(group.rank()))); };
  const auto data = [&] { return data_of(input.at("inputs").at(static_cast<std::size_t>(group.rank()))); };
  if (kind == "gather") return json_of(gather(group, mine(), kSite));
  if (kind == "gather_object") return json_of(gather_object(group, data(), kSite));
  if (kind == "reduce") return json_of(reduce(group, mine(), reduction_of(input.value("reduction", "mean")), kSite));
  if (kind == "broadcast") return json_of(broadcast(group, mine(), input.value("from_process", 0), kSite));
  if (kind == "broadcast_object_list") {
    return json_of(broadcast_object_list(group, data(), input.value("from_process", 0), kSite));
  }
  if (kind == "local_sgd") return local_sgd(input, group);
  if (kind == "split") return split(input, group);
  if (kind == "gather_for_metrics" && !input.contains("dataset_len")) {
    return json_of(gather_for_metrics(group, mine(), {}, kSite));
  }
  if (kind == "gather_for_metrics") return walk(input, group);
  if (kind == "pad_across_processes") {
    const PadOptions options{input.value("dim", 0), input.value("pad_index", 0.0), input.value("pad_first", false)};
    const Pytree padded = pad_across_processes(group, mine(), options, kSite);
    Json found = {{"padded", json_of(padded)}};
    // A tensor without that dimension stays as it is, and what differs cannot be gathered.
    if (expected.contains("gathered")) found["gathered"] = json_of(gather(group, padded, kSite));
    return found;
  }
  return nullptr;
}

/// The same calls with one process hand back what they got.
Json single_outcome(const Json& input, const Json& expected, ProcessGroup& group) {
  const std::string op = input.at("op");
  const Json got = outcome(op, input, expected, group);
  return op == "pad_across_processes" ? got.at("padded") : got;
}

void check_outcome(const tests::GoldenCase& c, const Json& got, std::size_t rank) {
  INFO("rank " << rank << " got " << got << ", expected " << c.expected);
  if (c.kind == "pad_across_processes") {
    CHECK(agree(got.at("padded"), c.expected.at("per_rank").at(rank)));
    if (c.expected.contains("gathered")) CHECK(agree(got.at("gathered"), c.expected.at("gathered")));
  } else if (c.kind == "local_sgd") {
    for (std::size_t step = 0; step < got.at("weights").size(); ++step) {
      tests::check_near(got.at("weights").at(step).get<double>(), c.expected.at("weights").at(step).at(rank), 1e-6,
                        1e-7);
    }
    tests::check_near(got.at("final").get<double>(), c.expected.at("final").at(rank), 1e-6, 1e-7);
  } else if (c.kind == "gather_for_metrics") {
    CHECK(agree(got, c.expected.at("steps")));
  } else if (!c.expected.contains("per_rank")) {
    CHECK(agree(got, c.expected.at("result")));
  } else if (const Json& expected = c.expected.at("per_rank").at(rank); expected.contains("error")) {
    CHECK(got.value("text", "") == uneven_message(c.input.at("value")));
  } else {
    CHECK(agree(got, expected));
  }
}

}  // namespace

TEST_CASE("collectives agree with Accelerate on every vector", "[golden][collectives]") {
  const std::vector<tests::GoldenCase> cases = tests::golden::read_topic("collectives");
  tests::golden::Coverage coverage("collectives");
  std::map<int, std::vector<std::size_t>> by_size;
  for (std::size_t i = 0; i < cases.size(); ++i) by_size[cases[i].input.value("num_processes", 1)].push_back(i);
  for (const auto& [size, indices] : by_size) {
    // Assertions are for one thread: ranks report, the test judges.
    std::vector<std::vector<Json>> got(cases.size(), std::vector<Json>(static_cast<std::size_t>(size)));
    tests::run_ranks({size}, [&](ProcessGroup& group) {
      for (const std::size_t i : indices) {
        const tests::GoldenCase& c = cases[i];
        got[i][static_cast<std::size_t>(group.rank())] = c.kind == "single_process"
                                                             ? single_outcome(c.input, c.expected, group)
                                                             : outcome(c.kind, c.input, c.expected, group);
      }
    });
    for (const std::size_t i : indices) {
      INFO(cases[i].kind << " " << cases[i].name);
      if (got[i].front().is_null()) {
        coverage.not_covered(cases[i].kind);
        continue;
      }
      for (std::size_t rank = 0; rank < got[i].size(); ++rank) check_outcome(cases[i], got[i][rank], rank);
      coverage.checked(cases[i].kind);
    }
  }
  coverage.finish();
}

TEST_CASE("plain data is refused where tensors are taken", "[distributed][collectives]") {
  const auto errors = tests::errors_of_ranks({1}, [](ProcessGroup& group) {
    gather(group, {Pytree::Mapping{{"name", {Node::string("a")}}}}, kSite);
  });
  CHECK(errors.front() == "gather accepts tensors, lists and mappings of them, got \"a\"");
}

TEST_CASE("the first rank goes before all others", "[distributed][collectives]") {
  std::atomic<int> been = 0, right = 0;
  tests::run_ranks({3}, [&](ProcessGroup& group) {
    main_process_first(group, kSite, [&] { right += (group.rank() == 0) == (been++ == 0) ? 1 : 0; });
  });
  CHECK(right == 3);
}
