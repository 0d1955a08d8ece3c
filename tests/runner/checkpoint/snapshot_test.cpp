#include "runner/checkpoint/snapshot.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "components/tensor/tensors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/stub_model_torch.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

using components::NamedTensor;
using components::model::Model;
using core::Node;
using tests::TempDir;

/// Large enough for direct writes and for several pieces of the copy; one tensor lies column by column.
std::unique_ptr<Model> model_of(std::int64_t rows) {
  return tests::stub_model({{"a", at::randn({rows, 1000})}, {"b", at::randn({7})}, {"c", at::randn({500, 600}).t()}},
                           {{"mean", at::randn({3})}});
}

struct Moments final : core::Stateful {
  explicit Moments(const Model& model) {
    for (const NamedTensor& named : model.parameters())
      tensors.push_back({"m." + named.name, at::randn(named.tensor.sizes())});
  }
  void save_state(core::StateWriter& writer) const override {
    for (const NamedTensor& named : tensors) writer.tensor(named.name, named.tensor);
  }
  components::NamedTensors tensors;
};

SaveOptions options_for(const std::string& dir, bool direct = true) {
  SaveOptions options;
  options.checkpoints_dir = dir;
  options.fields.step = 5;
  options.direct_io = direct;
  return options;
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Content of every file but the manifest, which carries a time.
std::vector<std::pair<std::string, std::string>> contents(const std::string& checkpoint) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const std::string name = entry.path().filename().string();
    if (name != "manifest.json") files.emplace_back(name, read(entry.path().string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("a copied state is written as it was, whatever training does meanwhile", "[checkpoint][snapshot]") {
  const c10::NoGradGuard no_grad;
  artifact::AlignedBytes memory;  // used again by each save
  for (const std::int64_t rows : {3000, 5000, 100}) {
    DYNAMIC_SECTION(rows << " rows") {
      const TempDir straight, copied;
      const auto model = model_of(rows);
      Moments moments(*model);
      TrainState state{model.get(), {{"optimizer", &moments}}, Node::mapping()};
      const std::string expected = save(state, options_for(straight.path(), false));

      Snapshot snapshot(state, std::numeric_limits<std::int64_t>::max());
      REQUIRE(snapshot.copy_to(memory));
      for (const NamedTensor& named : model->parameters()) named.tensor.add_(1);
      for (const NamedTensor& named : moments.tensors) named.tensor.zero_();
      const SaveOptions options = options_for(copied.path());
      const auto write = [&] {
        const auto draft = snapshot.begin(options);
        snapshot.write(*draft);
        return snapshot.commit(*draft, options);
      };
      std::string path;
      std::thread([&] { path = write(); }).join();
      CHECK(artifact::verify_checkpoint(path, true).ok());
      CHECK(contents(path) == contents(expected));
      // A full disk may ask for it a second time.
      CHECK(contents(write()) == contents(expected));
    }
  }
}

TEST_CASE("a sharded model is read whole, and its index alone opens it", "[checkpoint][snapshot]") {
  const TempDir dir;
  const auto saved = model_of(100);
  SaveOptions options = options_for(dir.path());
  options.shard_bytes_max = 400'010;  // a alone, c alone, the rest
  const TrainState state{saved.get(), {}, Node::mapping()};
  const std::string path = save(state, options);
  CHECK_FALSE(fs::exists(path + "/model.safetensors"));
  CHECK(fs::exists(path + "/model-00003-of-00003.safetensors"));
  CHECK(artifact::verify_checkpoint(path).ok());
  for (const std::string& from : {path, path + "/model.safetensors.index.json"}) {
    const auto loaded = model_of(100);
    load_weights(from, *loaded);
    for (std::size_t i = 0; i < saved->parameters().size(); ++i) {
      CHECK(at::equal(saved->parameters()[i].tensor, loaded->parameters()[i].tensor));
    }
    CHECK(at::equal(saved->buffers()[0].tensor, loaded->buffers()[0].tensor));
  }
  const auto resumed = model_of(100);
  TrainState target{resumed.get(), {}, Node()};
  load(path, target);
  CHECK(at::equal(saved->parameters()[2].tensor, resumed->parameters()[2].tensor));
}

TEST_CASE("a write that fails says why and leaves nothing", "[checkpoint][snapshot]") {
  const TempDir dir;
  const auto model = model_of(100);
  const Snapshot snapshot({model.get(), {}, Node::mapping()}, std::numeric_limits<std::int64_t>::max());
  SaveOptions options = options_for(dir.path());
  options.metrics_committed = []() -> std::int64_t {
    throw core::RunError("run.db is full", "", core::kExitResumable);
  };
  try {
    const auto draft = snapshot.begin(options);
    snapshot.write(*draft);
    snapshot.commit(*draft, options);
    FAIL("it was written");
  } catch (const core::RunError& error) {
    CHECK(std::string(error.what()) == "run.db is full");
    CHECK(error.exit_code() == core::kExitResumable);
  }
  CHECK(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace runner::checkpoint
