#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runner/artifact/joint_save.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/pieced_tensors.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

using tests::TempDir;

constexpr int kProcesses = 3;
constexpr std::int64_t kColumns = 2;
constexpr const char* kSet = "model.safetensors";

/// Rows of "w", which has 5 in all: 2, 2 and 1.
struct Part {
  std::vector<float> values;
  std::int64_t first = 0;
};

Part part_of(int process) {
  Part part;
  part.first = 2L * process;
  const std::int64_t rows = process < 2 ? 2 : 1;
  for (std::int64_t i = 0; i < rows * kColumns; ++i) {
    part.values.push_back(static_cast<float>(part.first * kColumns + i));
  }
  return part;
}

std::shared_ptr<const JointSave> joint(int process, std::int64_t number = 1) {
  return std::make_shared<const JointSave>(JointSave{process, kProcesses, number, ::getpid(), 20.0});
}

core::Result<std::string> save_part(const std::string& folder, int process, std::int64_t number = 1) {
  return core::attempt([&] {
    const auto writer = CheckpointWriter::begin(folder, 7, 0, system_io(), {false, nullptr, joint(process, number)});
    const Part part = part_of(process);
    const auto bytes = static_cast<std::int64_t>(part.values.size() * sizeof(float));
    const std::string file = shard_file(process);
    writer.value()
        ->add_safetensors(file,
                          {{name_in_shard(kSet, "w"), "F32", {bytes / 8, kColumns}, part.values.data(), bytes, {}}}, {})
        .value();
    writer.value()->add_pieces({{kSet, {{"w", {5, kColumns}, {{file, part.first}}}}}});
    return writer.value()->commit({}, nullptr, 1000).value();
  });
}

/// All parts at once; what the first process says.
core::Result<std::string> save(const std::string& folder, std::int64_t number = 1) {
  std::vector<std::jthread> others;
  for (int process = kProcesses - 1; process > 0; --process) {
    others.emplace_back([&folder, process, number] { (void)save_part(folder, process, number); });
  }
  return save_part(folder, 0, number);
}

std::vector<float> values_of(const TensorBytes& bytes) {
  std::vector<char> scratch;
  const char* data = bytes_at(bytes, 0, bytes.bytes, scratch);
  std::vector<float> values(static_cast<std::size_t>(bytes.bytes) / sizeof(float));
  std::copy_n(data, bytes.bytes, reinterpret_cast<char*>(values.data()));
  return values;
}

TEST_CASE("several processes write one checkpoint, whose tensors are read as whole ones", "[artifact][pieces]") {
  const TempDir dir;
  const std::string path = save(dir.path()).value();
  CHECK(fs::path(path).filename() == "step-000007");
  CHECK(verify_checkpoint(path).ok());
  CHECK(read_manifest(path).value().format_version == 2);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  CHECK(names ==
        std::vector<std::string>{"manifest.json", "shard-0.safetensors", "shard-1.safetensors", "shard-2.safetensors"});

  CHECK(tensor_sets(path) == std::vector<std::string>{kSet});
  const std::string set = find_tensor_set(path).value();
  CHECK(verify_tensor_set(set).ok());
  CHECK(files_of_set(set).value().size() == kProcesses);
  const auto reader = open_tensors(set).value();
  const TensorBytes* whole = reader->find("w");
  REQUIRE(whole != nullptr);
  CHECK(whole->shape == std::vector<std::int64_t>{5, kColumns});
  CHECK(values_of(*whole) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(values_of(rows_of(*whole, 1, 3)) == std::vector<float>{2, 3, 4, 5, 6, 7});  // of two files
  CHECK(values_of(rows_of(*whole, 4, 1)) == std::vector<float>{8, 9});
  CHECK(values_of(rows_of(*whole, 5, 0)).empty());

  SECTION("the same step saved again replaces it") {
    CHECK(save(dir.path(), 2).value() == path);
    CHECK(verify_checkpoint(path).ok());
  }
  SECTION("and is the same as a whole one") {
    const auto writer = CheckpointWriter::begin(dir.path(), 8, 0, system_io()).value();
    const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    writer->add_safetensors(kSet, {{"w", "F32", {5, kColumns}, values.data(), 40, {}}}, {}).value();
    const std::string other = writer->commit({}, nullptr, 1000).value();
    CHECK(read_manifest(other).value().format_version == 1);
    CHECK(compare_checkpoints(path, other).value().same());
  }
  SECTION("a damaged file is named") {
    std::fstream(path + "/shard-1.safetensors", std::ios::in | std::ios::out | std::ios::binary)
            .seekp(-1, std::ios::end)
        << 'x';
    const auto verdict = verify_checkpoint(path);
    REQUIRE_FALSE(verdict.ok());
    CHECK(verdict.failure().message.find("shard-1.safetensors") != std::string::npos);
    CHECK_FALSE(verify_tensor_set(set).ok());
  }
  SECTION("a file that is gone is named") {
    fs::remove(path + "/shard-2.safetensors");
    const auto opened = open_tensors(set);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.failure().message.find("shard-2.safetensors") != std::string::npos);
  }
}

TEST_CASE("pieces that do not make up their tensor are refused", "[artifact][pieces]") {
  const TempDir dir;
  const std::string path = save(dir.path()).value();
  Manifest manifest = read_manifest(path).value();
  TensorPieces& tensor = manifest.pieces.front().tensors.front();
  SECTION("rows are missing") { tensor.shape.front() = 6; }
  SECTION("rows overlap") { tensor.pieces.back().first_row = 3; }
  SECTION("rows have another width") { tensor.shape.back() = 3; }
  SECTION("none is listed") { tensor.pieces.clear(); }
  SECTION("a file has no such tensor") { tensor.name = "v"; }
  std::ofstream(path + "/manifest.json") << manifest_text(manifest);
  const auto opened = open_tensors(pieces_path(path, kSet));
  REQUIRE_FALSE(opened.ok());
  INFO(opened.failure().message);
  CHECK(opened.failure().message.find("tensor \"") != std::string::npos);
}

TEST_CASE("a joint save ends when a process fails or does not come", "[artifact][pieces]") {
  const TempDir dir;
  SECTION("one tells that it failed") {
    std::vector<std::jthread> others;
    others.emplace_back([&] { (void)save_part(dir.path(), 1); });
    others.emplace_back([&] {
      const auto writer = CheckpointWriter::begin(dir.path(), 7, 0, system_io(), {false, nullptr, joint(2)}).value();
      writer->give_up({"no space left", "make some", core::kExitResumable});
    });
    const auto saved = save_part(dir.path(), 0);
    REQUIRE_FALSE(saved.ok());
    CHECK(saved.failure().message == "process 2 could not save its part: no space left");
    CHECK(saved.failure().exit_code == core::kExitResumable);
  }
  SECTION("one does not come in time") {
    const JointSave hasty{0, kProcesses, 1, ::getpid(), 0.05};
    const auto writer = CheckpointWriter::begin(dir.path(), 7, 0, system_io(),
                                                {false, nullptr, std::make_shared<const JointSave>(hasty)})
                            .value();
    const auto saved = writer->commit({}, nullptr, 1000);
    REQUIRE_FALSE(saved.ok());
    CHECK(saved.failure().message.find("for process 1 to write its part") != std::string::npos);
    CHECK(saved.failure().exit_code == core::kExitPeerLost);
  }
  SECTION("one has ended") {
    const JointSave left{0, kProcesses, 1, ::getpid(), 20.0, nullptr, [](int process) { return process == 1; }};
    const auto writer = CheckpointWriter::begin(dir.path(), 7, 0, system_io(),
                                                {false, nullptr, std::make_shared<const JointSave>(left)})
                            .value();
    const auto saved = writer->commit({}, nullptr, 1000);
    REQUIRE_FALSE(saved.ok());
    CHECK(saved.failure().message == "the save waited for process 1 to write its part: it has ended");
  }
  SECTION("the draft is moved, where the others do not find it") {
    const auto writer = CheckpointWriter::begin(dir.path(), 7, 0, system_io(), {false, nullptr, joint(0)}).value();
    const fs::path draft = fs::directory_iterator(dir.path())->path();
    fs::rename(draft, draft.parent_path() / "elsewhere");
    const auto saved = writer->commit({}, nullptr, 1000);
    REQUIRE_FALSE(saved.ok());
    CHECK(saved.failure().message == draft.string() + " was moved or removed while the processes wrote their parts");
  }
  SECTION("the first one never opens it") {
    const JointSave given_up{1, kProcesses, 1, ::getpid(), 20.0, [] { return true; }};
    const auto writer = CheckpointWriter::begin(dir.path(), 7, 0, system_io(),
                                                {false, nullptr, std::make_shared<const JointSave>(given_up)});
    CHECK_FALSE(writer.ok());
  }
  CHECK(list_checkpoints(dir.path()).empty());
}

TEST_CASE("a part is known by its name and its tensors", "[artifact][pieces]") {
  const TempDir dir;
  const std::string path = save(dir.path()).value();
  CHECK(is_shard(path + "/shard-2.safetensors"));
  const std::string part = path + "/shard-1.safetensors";
  const auto of_file = find_tensor_set(part);
  REQUIRE_FALSE(of_file.ok());
  CHECK(of_file.failure().hint == "name the checkpoint's folder: " + path);
  SECTION("another name") {
    fs::rename(part, path + "/shard-a.safetensors");
    CHECK_FALSE(is_shard(path + "/shard-a.safetensors"));
  }
  SECTION("another program's file of that name") {
    fs::copy_file(path + "/shard-0.safetensors", dir.path() + "/shard-0.safetensors");
    std::fstream file(dir.path() + "/shard-0.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    std::string head(64, ' ');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    file.seekp(static_cast<std::streamoff>(head.find('/')));
    file << '.';
    file.close();
    CHECK_FALSE(is_shard(dir.path() + "/shard-0.safetensors"));
    CHECK(find_tensor_set(dir.path() + "/shard-0.safetensors").ok());
  }
  SECTION("no manifest") {
    fs::remove(path + "/manifest.json");
    for (const std::string& named : {path, part}) {
      const auto found = find_tensor_set(named);
      REQUIRE_FALSE(found.ok());
      CHECK(found.failure().message.find("no manifest.json") != std::string::npos);
    }
  }
  SECTION("a damaged manifest") {
    std::ofstream(path + "/manifest.json") << "{}";
    CHECK(find_tensor_set(path).failure().message == read_manifest(path).failure().message);
  }
}

}  // namespace
}  // namespace runner::artifact
