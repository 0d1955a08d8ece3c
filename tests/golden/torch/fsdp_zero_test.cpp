// PyTorch's FSDP in Accelerate, step by step: losses of each rank, norms and final weights.

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/memory/flat_parameters.h"
#include "runner/train/experiment/memory/model_state.h"
#include "runner/train/strategy/row_shards.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"
#include "tests/support/torch/sharded_training_torch.h"

namespace runner::train {
namespace {

using nlohmann::json;

constexpr tests::golden::Tolerance kTolerance = {.relative = 1e-5, .absolute = 1e-6};

/// `x=inp(x); per block x = x + down(tanh(up(layernorm(x)))); out(x); MSE mean`
std::string recipe_of(const json& input, std::size_t steps) {
  const auto dims = input.at("dims").get<std::vector<int>>();  // in, width, hidden, blocks, out
  const auto linear = [](int width) { return "{type: linear, out_features: " + std::to_string(width) + "}"; };
  std::string layers = linear(dims[1]);
  for (int i = 0; i < dims[3]; ++i)
    layers += ", {type: residual, body: [layer_norm, " + linear(dims[2]) + ", tanh, " + linear(dims[1]) + "]}";
  layers += ", " + linear(dims[4]);
  json optimizer = {{"type", "adamw"}, {"lr", input.at("optimizer").at("lr")}};
  return "model: {type: sequential, layers: [" + layers + "]}\ndata: {train: {type: csv_table, path: rows.csv, " +
         "target: [y]}}\nloss: mse\noptimizer: " + optimizer.dump() + "\nloader: {shuffle: false}\n" +
         "parallelism: {shard: parameters}\ntraining: {max_steps: " + std::to_string(steps) +
         ", micro_batch_size: " + input.at("batch_per_rank").dump() +
         ", clip_grad_norm: " + input.at("clip_norm").dump() + "}\n";
}

std::string table_of(const json& input) {
  std::string text;
  for (std::size_t i = 0; i < input.at("x").at(0).size(); ++i) text += "x" + std::to_string(i) + ",";
  text += "y\n";
  for (std::size_t row = 0; row < input.at("x").size(); ++row) {
    for (const json& number : input.at("x").at(row)) text += number.dump() + ",";
    text += input.at("y").at(row).at(0).dump() + "\n";
  }
  return text;
}

std::vector<double> flat(const json& weights, const std::vector<std::string>& names) {
  std::vector<double> all;
  for (const std::string& name : names) {
    for (const double number : weights.at(name)) all.push_back(number);
  }
  return all;
}

/// In the order of the model's parameters.
std::vector<std::string> names_of(int blocks) {
  std::vector<std::string> names = {"inp.weight", "inp.bias"};
  for (int i = 0; i < blocks; ++i) {
    for (const char* part : {"ln.weight", "ln.bias", "up.weight", "up.bias", "down.weight", "down.bias"})
      names.push_back("blocks." + std::to_string(i) + "." + part);
  }
  names.insert(names.end(), {"out.weight", "out.bias"});
  return names;
}

bool check(const tests::GoldenCase& c) {
  const auto names = names_of(c.input.at("dims").at(3));
  const std::vector<double> initial = flat(c.input.at("initial_weights"), names);
  const tests::Folder folder;
  folder.write("recipe.yaml", recipe_of(c.input, c.expected.at("norms").size()));
  folder.write("rows.csv", table_of(c.input));
  const auto begin_with = [&initial](Experiment& experiment) {
    const at::NoGradGuard no_grad;
    const double* from = initial.data();
    for (const auto& parameter : experiment.model->parameters()) {
      float* to = parameter.tensor.mutable_data_ptr<float>();
      for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i) to[i] = static_cast<float>(*from++);
    }
  };
  const tests::Trained trained = tests::train_on_ranks({}, c.input.at("num_processes"), begin_with);
  for (std::size_t rank = 0; rank < trained.micro_losses.size(); ++rank) {
    CHECK(tests::golden::differences("losses", trained.micro_losses[rank], c.expected.at("losses").at(rank),
                                     kTolerance) == "");
  }
  CHECK(tests::golden::differences("norms", trained.norms, c.expected.at("norms"), kTolerance) == "");
  CHECK(tests::golden::differences("weights", trained.weights, json(flat(c.expected.at("final"), names)), kTolerance) ==
        "");
  return true;
}

/// A process's elements of a flat buffer: those of a tensor of one dimension. Padding is in the exchanges alone.
bool check_partition(const tests::GoldenCase& c) {
  const int world = c.input.at("world");
  const auto elements = c.input.at("numel").get<std::int64_t>();
  CHECK(rows_of(elements, 1, {0, world}).count * world == c.expected.at("padded").get<std::int64_t>());
  for (int process = 0; process < world; ++process) {
    CAPTURE(process);
    const Rows rows = rows_of(elements, 1, {process, world});
    const json& range = c.expected.at("ranges").at(static_cast<std::size_t>(process));
    CHECK(rows.count == c.expected.at("owned_real").at(static_cast<std::size_t>(process)).get<std::int64_t>());
    CHECK(rows.first == std::min(elements, range.at(0).get<std::int64_t>()));
    CHECK(rows.first + rows.count == std::min(elements, range.at(1).get<std::int64_t>()));
  }
  return true;
}

FlatWrapping wrapping_of(const json& input) {
  using Policy = FlatWrapping::Policy;
  if (input.at("wrap") == "NO_WRAP") return {Policy::kNone, 0, {}};
  if (input.at("wrap") == "SIZE_BASED") return {Policy::kSize, input.at("min_num_params"), {}};
  FlatWrapping wrapping{Policy::kModules, 0, {}};
  REQUIRE(input.at("layer_class") == "Block");
  for (int i = 0; i < input.at("model").at("blocks").get<int>(); ++i)
    wrapping.modules.insert("blocks." + std::to_string(i));
  return wrapping;
}

std::vector<std::vector<std::int64_t>> shapes_of(const json& model) {
  const std::int64_t input = model.at("input"), width = model.at("width"), ffn = model.at("ffn"),
                     output = model.at("output");
  std::vector<std::vector<std::int64_t>> shapes = {{width, input}, {width}};
  for (int i = 0; i < model.at("blocks").get<int>(); ++i)
    shapes.insert(shapes.end(), {{width}, {width}, {ffn, width}, {ffn}, {width, ffn}, {width}});
  shapes.insert(shapes.end(), {{output, width}, {output}});
  return shapes;
}

/// What FSDP 1 makes of the model of the vectors, in float32.
bool check_flat(const tests::GoldenCase& c) {
  const auto shapes = shapes_of(c.input.at("model"));
  const auto names = names_of(c.input.at("model").at("blocks"));
  std::vector<FlatMember> members;
  for (std::size_t i = 0; i < names.size(); ++i) members.push_back({names[i], count_of(shapes[i])});
  const int processes = c.input.at("num_processes");
  const bool is_hybrid = c.input.at("strategy") == "HYBRID_SHARD";  // groups of 2
  const FlatSharding sharding{.processes = is_hybrid ? std::min(processes, 2) : processes,
                              .shards = c.input.at("strategy") != "NO_SHARD",
                              .align_to = c.input.at("use_orig_params").get<bool>() ? kFlatAlignmentBytes / 4 : 0};
  json units = json::array();
  for (const FlatUnit& unit : flat_units(members, wrapping_of(c.input), sharding)) {
    json shown = {{"path", unit.path}, {"unpadded_numel", unit.elements}, {"local_numel", unit.own_elements}};
    for (const std::size_t member : unit.members) {
      shown["params"].push_back(names[member].substr(unit.path.empty() ? 0 : unit.path.size() + 1));
      shown["shapes"].push_back(shapes[member]);
    }
    for (int rank = 0; rank < processes; ++rank)
      shown["padding"].push_back(unit.padding[static_cast<std::size_t>(rank % sharding.processes)]);
    units.push_back(std::move(shown));
  }
  CHECK(units == c.expected.at("units"));
  return true;
}

/// Weights and gradients of 2 bytes; the optimizer has a copy in 4 and two moments.
bool check_state(const tests::GoldenCase& c) {
  const double elements = c.input.at("numel");
  const ModelState whole{2 * elements, 2 * elements, 12 * elements};
  for (const auto& [stage, bytes] : c.expected.at("bytes").items()) {
    CAPTURE(stage);
    tests::check_near(held_by_stage(whole, std::stoi(stage), c.input.at("world")).total(), bytes, 1e-12, 0.0);
  }
  return true;
}

}  // namespace

TEST_CASE("a process holds what ZeRO's formula says, on every vector", "[golden][fsdp_zero]") {
  tests::for_each_case("fsdp_zero", check_state, [](const tests::GoldenCase& c) { return c.kind == "zero_memory"; });
}

TEST_CASE("flat parameters are those of FSDP, on every vector", "[golden][fsdp_zero]") {
  tests::for_each_case("fsdp_zero", check_flat, [](const tests::GoldenCase& c) { return c.kind == "flat_params"; });
}

TEST_CASE("a process has the elements that ZeRO gives it, on every vector", "[golden][fsdp_zero]") {
  tests::for_each_case("fsdp_zero", check_partition,
                       [](const tests::GoldenCase& c) { return c.kind == "zero_partition"; });
}

TEST_CASE("sharded training agrees with FSDP on every vector", "[golden][fsdp_zero]") {
  tests::for_each_case("fsdp_zero", check, [](const tests::GoldenCase& c) { return c.kind == "train"; });
}

}  // namespace runner::train
