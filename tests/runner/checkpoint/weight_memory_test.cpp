// What a model takes while it is built and read from a file.

#include <ATen/Functions.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <string>

#include "components/tensor/tensors.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/tensor_file.h"
#include "tests/support/folder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/memory_counter_torch.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::checkpoint {
namespace {

using artifact::TensorBytes;

/// Bytes of the file that are in this process's memory; what the page cache has does not count.
std::int64_t resident_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::int64_t kilobytes = 0;
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.substr(0, line.find(' ')).find('-') != std::string::npos) is_ours = line.ends_with(path);  // a mapping
    if (is_ours && line.starts_with("Rss:")) kilobytes += std::stoll(line.substr(4));
  }
  return kilobytes * 1024;
}

void write(const std::string& path, const components::NamedTensors& given) {
  std::vector<TensorBytes> tensors;
  for (const auto& [name, tensor] : given) {
    tensors.push_back({name, dtype_word(tensor), tensor.sizes().vec(), tensor.const_data_ptr(),
                       static_cast<std::int64_t>(tensor.nbytes())});
  }
  artifact::sort_for_safetensors(tensors);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << artifact::safetensors_head(tensors, {});
  for (const auto& tensor : tensors) file.write(static_cast<const char*>(tensor.data), tensor.bytes);
}

TEST_CASE("a tensor is read in pieces that do not stay", "[checkpoint]") {
  const tests::TempDir dir;
  const std::string path = dir / "a.safetensors";
  constexpr std::int64_t kPiece = 32 << 20, kSlack = 1 << 20;
  const at::Tensor numbers = at::arange(24 << 20, at::kFloat).reshape({6 << 10, 4 << 10});  // 96 MiB
  write(path, {{"a", numbers}});
  const TensorSource source(path);
  const TensorBytes& bytes = *source.find("a");
  SECTION("in its own type") {
    const at::Tensor target = at::zeros(numbers.sizes());
    const tests::MemoryCounter counter;
    source.copy_to(bytes, target);
    CHECK(counter.peak_bytes() <= kSlack);
    CHECK(at::equal(target, numbers));
  }
  SECTION("in another type, into columns") {
    const at::Tensor target = at::zeros({4 << 10, 6 << 10}, at::kBFloat16);
    const tests::MemoryCounter counter;
    source.copy_to(bytes, target.t());
    CHECK(counter.peak_bytes() <= kPiece + kSlack);
    CHECK(at::equal(target.t(), numbers.to(at::kBFloat16)));
  }
  CHECK(resident_bytes(path) <= kSlack);
}

TEST_CASE("a model in bfloat16 is built and read with little more than its weights", "[checkpoint]") {
  const tests::Folder folder;
  std::ofstream("ids.jsonl") << "{\"input_ids\": [1, 2, 3, 4]}\n";
  std::ofstream("recipe.yaml") << R"(
recipe_version: 1
model: {type: llama, n_layer: 2, n_head: 4, n_embd: 512, vocab_size: 16000}
data: {train: {type: ids, path: ids.jsonl}}
loss: cross_entropy
optimizer: adamw
precision: bf16-true
training: {max_steps: 1, micro_batch_size: 1}
)";
  constexpr std::int64_t kSlack = 12 << 20;
  for (const bool follow : {false, true}) {
    const tests::MemoryCounter counter;
    train::BuildOptions how;
    how.for_training = false;
    how.weights_follow = follow;
    const auto built = tests::build_recipe_file({}, how);
    REQUIRE(built.messages == "");
    std::int64_t weights = 0;
    for (const auto& parameter : built.experiment->model->parameters()) {
      CHECK(parameter.tensor.scalar_type() == at::kBFloat16);
      weights += static_cast<std::int64_t>(parameter.tensor.nbytes());
    }
    REQUIRE(weights > 2 * kSlack);
    CHECK(counter.peak_bytes() <= weights + kSlack);
    if (!follow) {
      write("weights.safetensors", built.experiment->model->parameters());
      continue;
    }
    const std::int64_t before = counter.memory_bytes();
    load_weights("weights.safetensors", *built.experiment->model);
    CHECK(counter.peak_bytes() <= before + kSlack);
  }
}

}  // namespace
}  // namespace runner::checkpoint
