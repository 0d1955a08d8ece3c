#include "runner/checkpoint/checkpoint_prefetch.h"

#include <ATen/Functions.h>
#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "components/tensor/tensors.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/state_section.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/stub_model_torch.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

using components::NamedTensors;
using core::Node;
using tests::TempDir;

constexpr std::int64_t kPlenty = std::numeric_limits<std::int64_t>::max();

struct Moments final : core::Stateful {
  NamedTensors tensors;
  void save_state(core::StateWriter& writer) const override {
    for (const auto& named : tensors) writer.tensor(named.name, named.tensor);
  }
  void load_state(const core::StateReader& reader) override {
    for (auto& named : tensors) named.tensor = reader.tensor(named.name);
  }
};

std::unique_ptr<components::model::Model> new_model() {
  return tests::stub_model({{"a.weight", at::randn({30, 7})}, {"b.weight", at::randn({1000, 9})}},
                           {{"b.mean", at::randn({9}, at::kDouble)}}, {});
}

Moments new_moments() {
  Moments moments;
  moments.tensors = {{"exp_avg.a", at::randn({30, 7})},
                     {"exp_avg.b", at::randn({9, 1000}).t()},
                     {"none", at::empty({0, 4})},
                     {"count", at::scalar_tensor(11, at::kLong)},
                     {"flags", at::ones({3}, at::kBool)}};
  return moments;
}

std::string saved_in(const TempDir& dir, const components::model::Model& model, Moments& moments,
                     std::int64_t shard_bytes_max = kPlenty) {
  const TrainState state{&model, {{"optimizer", &moments}}, Node::mapping()};
  SaveOptions options;
  options.checkpoints_dir = dir.path();
  options.fields.step = 5;
  options.shard_bytes_max = shard_bytes_max;
  return save(state, options);
}

void flip(const std::string& path, std::int64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

TEST_CASE("a held checkpoint is loaded from what was verified, its files are not read again",
          "[checkpoint][held_files]") {
  for (const std::int64_t shard_bytes_max : {kPlenty, std::int64_t{2000}}) {
    DYNAMIC_SECTION((shard_bytes_max == kPlenty ? "one file" : "shards")) {
      const TempDir dir;
      const auto saved = new_model();
      Moments moments = new_moments();
      const std::string path = saved_in(dir, *saved, moments, shard_bytes_max);
      const auto held = CheckpointPrefetch::begin(path, kPlenty);
      REQUIRE(held != nullptr);
      REQUIRE(held->verification().ok());
      for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.path().extension() == ".safetensors") std::ofstream(entry.path()) << "other bytes by now";
      }
      const auto loaded = new_model();
      Moments other = new_moments();
      TrainState target{loaded.get(), {{"optimizer", &other}}, Node()};
      load(path, target, held.get());
      held->release();
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(at::equal(loaded->parameters()[i].tensor, saved->parameters()[i].tensor));
      }
      CHECK(at::equal(loaded->buffers()[0].tensor, saved->buffers()[0].tensor));
      for (std::size_t i = 0; i < moments.tensors.size(); ++i) {
        INFO(moments.tensors[i].name);
        const at::Tensor& tensor = other.tensors[i].tensor;
        CHECK(at::equal(tensor, moments.tensors[i].tensor));
        CHECK(tensor.strides() == moments.tensors[i].tensor.strides());
        CHECK(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64 == 0);
      }
    }
  }
}

TEST_CASE("a tensor that is asked for twice is two tensors", "[checkpoint][held_files]") {
  const TempDir dir;
  const auto saved = new_model();
  Moments moments = new_moments();
  const std::string path = saved_in(dir, *saved, moments);
  const auto held = CheckpointPrefetch::begin(path, kPlenty);
  const SectionReader reader(path, "optimizer", Node::mapping(), held.get());
  const at::Tensor first = reader.tensor("exp_avg.a"), second = reader.tensor("exp_avg.a");
  CHECK(at::equal(first, second));
  CHECK(first.const_data_ptr() != second.const_data_ptr());
}

TEST_CASE("the verdict on a held checkpoint is that of verification", "[checkpoint][held_files]") {
  const TempDir dir;
  const auto saved = new_model();
  Moments moments = new_moments();
  const std::string path = saved_in(dir, *saved, moments);
  struct Case {
    const char* file;
    std::int64_t at;
  };
  // In the length, the header, the data; in what is no tensors.
  for (const Case& c :
       {Case{"optimizer.safetensors", 0}, Case{"optimizer.safetensors", 7}, Case{"optimizer.safetensors", 20},
        Case{"model.safetensors", 30'000}, Case{"trainer.json", 40}, Case{"manifest.json", 300}}) {
    CAPTURE(c.file, c.at);
    const std::string file = path + "/" + c.file;
    flip(file, c.at);
    const CheckpointPrefetch held(path);
    const auto expected = artifact::verify_checkpoint(path);
    REQUIRE_FALSE(expected.ok());
    REQUIRE_FALSE(held.verification().ok());
    CHECK(held.verification().failure().message == expected.failure().message);
    flip(file, c.at);
  }
  fs::rename(path + "/model.safetensors", path + "/elsewhere");
  const CheckpointPrefetch held(path);
  REQUIRE_FALSE(held.verification().ok());
  CHECK(held.verification().failure().message == artifact::verify_checkpoint(path).failure().message);
}

TEST_CASE("a checkpoint too large to hold twice, or invalid, is not prefetched", "[checkpoint][held_files]") {
  const TempDir dir;
  const auto saved = new_model();
  Moments moments = new_moments();
  const std::string path = saved_in(dir, *saved, moments);
  CHECK(CheckpointPrefetch::begin(path, 100'000) == nullptr);  // 73 KB of tensors
  CHECK(CheckpointPrefetch::begin(path, 1'000'000) != nullptr);
  CHECK(CheckpointPrefetch::begin("", kPlenty) == nullptr);
  CHECK(CheckpointPrefetch::begin(dir / "none", kPlenty) == nullptr);
}

}  // namespace
}  // namespace runner::checkpoint
