// What Accelerate's save_model writes, topic checkpointing. The kinds save_model_twice, files and rotation document how
// Accelerate goes about it; docs/decisions/0005-checkpoints-and-accelerate.md says where roux differs and why.

#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/core/units.h"
#include "tests/golden/refused_sizes.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/stub_model_torch.h"

namespace {

namespace fs = std::filesystem;

using components::NamedTensors;
using components::block::Tie;
using tests::golden::Json;

at::ScalarType type_of(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types{
      {"float32", at::kFloat}, {"float16", at::kHalf}, {"bfloat16", at::kBFloat16}, {"int64", at::kLong}};
  return types.at(name);
}

runner::core::Result<std::int64_t> size_of(const Json& json) {
  return runner::core::parse_bytes(json.is_string() ? json.get<std::string>() : json.dump());
}

/// The checkpoint of a model that holds these tensors; returns its folder.
std::string save(const tests::TempDir& dir, NamedTensors tensors, std::vector<Tie> ties, std::int64_t shard_bytes_max) {
  const auto model = tests::stub_model(std::move(tensors), {}, std::move(ties));
  runner::checkpoint::TrainState state;
  state.model = model.get();
  state.counters = runner::core::Node::mapping();
  runner::checkpoint::SaveOptions options;
  options.checkpoints_dir = dir.path();
  options.fields.step = 1;
  options.shard_bytes_max = shard_bytes_max;
  return runner::checkpoint::save(state, options);
}

Json header_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::uint64_t length = 0;
  stream.read(reinterpret_cast<char*>(&length), sizeof length);
  std::string text(length, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(length));
  return Json::parse(text);
}

/// In the order of their bytes.
std::vector<std::string> tensors_in(const Json& header) {
  std::map<std::int64_t, std::string> by_offset;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") by_offset[entry.at("data_offsets").at(0)] = name;
  }
  std::vector<std::string> names;
  for (const auto& [offset, name] : by_offset) names.push_back(name);
  return names;
}

/// "", or why a size is taken that Accelerate refuses.
std::string check_save_model(const tests::GoldenCase& c) {
  const auto shard_bytes_max = size_of(c.input.at("max_shard_size"));
  if (c.expected.contains("error")) {
    const std::string reason = tests::golden::reason_to_read(c.input.at("max_shard_size"));
    CHECK(shard_bytes_max.ok() == !reason.empty());
    return reason;
  }
  NamedTensors tensors;
  std::vector<Tie> ties;
  const Json& tied = c.input.at("tied");
  for (const Json& tensor : c.input.at("tensors")) {
    const std::string name = tensor.at(0);
    if (tied.contains(name)) {
      ties.push_back({name, tied.at(name)});
    } else {
      tensors.push_back({name, at::zeros(tensor.at(1).get<std::vector<std::int64_t>>(), type_of(tensor.at(2)))});
    }
  }
  const tests::TempDir dir;
  const fs::path folder = save(dir, tensors, ties, shard_bytes_max.value());

  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("model")) files.insert(entry.path().filename().string());
  }
  CHECK(files == c.expected.at("all_files").get<std::set<std::string>>());
  for (const auto& [file, names] : c.expected.at("files").items()) {
    const Json header = header_of(folder / file);
    CHECK(tensors_in(header) == names.get<std::vector<std::string>>());
    CHECK(header == c.expected.at("headers").at(file));
  }
  if (c.expected.at("index").is_null()) {
    CHECK_FALSE(fs::exists(folder / "model.safetensors.index.json"));
  } else {
    CHECK(Json::parse(std::ifstream(folder / "model.safetensors.index.json")) == c.expected.at("index"));
  }
  return "";
}

/// The owner is the first of a group in the model's order.
void check_shared_names(const tests::GoldenCase& c) {
  NamedTensors tensors;
  std::vector<Tie> ties;
  std::map<std::string, std::string> owner_of;
  for (const std::string name : c.input.at("order")) {
    for (const Json& group : c.input.at("shared_groups")) {
      const auto names = group.get<std::set<std::string>>();
      if (!names.contains(name)) continue;
      std::string owner = name;
      for (const auto& [other, its_owner] : owner_of) {
        if (names.contains(other)) owner = its_owner;
      }
      owner_of[name] = owner;
    }
    if (const auto owner = owner_of.find(name); owner != owner_of.end() && owner->second != name) {
      ties.push_back({name, owner->second});
    } else {
      tensors.push_back({name, at::zeros({2})});
    }
  }
  const tests::TempDir dir;
  const fs::path folder = save(dir, tensors, ties, 1 << 20);
  const std::vector<std::string> kept = tensors_in(header_of(folder / "model.safetensors"));
  CHECK(std::set<std::string>(kept.begin(), kept.end()) == c.expected.at("kept").get<std::set<std::string>>());
}

TEST_CASE("the model's files are those of Accelerate's save_model", "[golden][checkpointing]") {
  tests::golden::Coverage coverage("checkpointing");
  for (const tests::GoldenCase& c : tests::golden::read_topic("checkpointing")) {
    CAPTURE(c.kind, c.name);
    std::string taken;
    if (c.kind == "save_model") {
      taken = check_save_model(c);
    } else if (c.kind == "shared_names") {
      check_shared_names(c);
    } else {
      coverage.not_covered(c.kind);
      continue;
    }
    if (taken.empty()) {
      coverage.checked(c.kind);
    } else {
      coverage.not_covered(c.kind, taken);
    }
  }
  coverage.finish();
}

}  // namespace
