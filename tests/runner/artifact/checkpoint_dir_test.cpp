#include "runner/artifact/checkpoint_dir.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/core/error.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;
using tests::TempDir;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

/// Most tests need no disk that survives a loss of power.
class FastDisk final : public Io {
 public:
  void sync_file(int, const std::string&) override {}
  void sync_dir(const std::string&) override {}
};

std::string save(const std::string& dir, std::int64_t step, std::int64_t branch = 0) {
  FastDisk io;
  const auto draft = CheckpointWriter::begin(dir, step, 1000, io).value();
  draft->add_text("trainer.json", "{\"step\": " + std::to_string(step) + "}").value();
  ManifestFields fields;
  fields.branch = branch;
  fields.run_id = "r1";
  fields.recipe_hash = "00ff";
  fields.cpu_capability = "AVX2";
  fields.threads = 2;
  fields.data_position = core::Node::mapping();
  fields.data_position.set("epoch", core::Node::floating(0.5));
  return draft
      ->commit(
          fields, [] { return std::int64_t{42}; }, 1234)
      .value();
}

std::vector<std::string> names(const std::string& dir) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(dir)) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

TEST_CASE("a committed checkpoint reports what it was given", "[artifact]") {
  const TempDir dir;
  const std::string path = save(dir / "a/checkpoints", 500);
  CHECK(path == dir / "a/checkpoints/step-000500");
  CHECK(names(path) == std::vector<std::string>{"manifest.json", "trainer.json"});
  const Manifest manifest = verify_checkpoint(path).value();
  CHECK(manifest.format_version == 1);
  CHECK(manifest.created_ms == 1234);
  CHECK(manifest.fields.step == 500);
  CHECK(manifest.fields.last_metric_row == 42);
  CHECK(manifest.fields.run_id == "r1");
  CHECK(manifest.fields.recipe_hash == "00ff");
  CHECK(manifest.fields.cpu_capability == "AVX2");
  CHECK(manifest.fields.threads == 2);
  CHECK(manifest.fields.data_position.find("epoch")->as_double() == 0.5);
  REQUIRE(manifest.files.size() == 1);
  CHECK(manifest.files[0].name == "trainer.json");
  CHECK(manifest.files[0].bytes == 13);
  // xxhsum -H2 of {"step": 500}
  CHECK(manifest.files[0].checksum == checksum_of("{\"step\": 500}"));
}

TEST_CASE("the checksum is XXH3 of 128 bits", "[artifact]") {
  // Published by the xxHash project for the empty input.
  CHECK(checksum_of("") == "xxh128:99aa06d3014798d86001c324468d497f");
}

TEST_CASE("what is wrong with a checkpoint is said plainly", "[artifact]") {
  struct Case {
    const char* name;
    std::function<void(const std::string& checkpoint)> damage;
    const char* message;  ///< `@` stands for the checkpoint
  };
  const Case cases[] = {
      {"truncated file", [](const std::string& at) { fs::resize_file(at + "/trainer.json", 5); },
       "@/trainer.json holds 5 bytes, its manifest says 13"},
      {"flipped byte", [](const std::string& at) { overwrite(at + "/trainer.json", "{\"step\": 501}"); },
       "@/trainer.json does not match its checksum in the manifest: it was changed or damaged"},
      {"missing file", [](const std::string& at) { fs::remove(at + "/trainer.json"); }, "@/trainer.json is missing"},
      {"a folder in a file's place",
       [](const std::string& at) {
         fs::remove(at + "/trainer.json");
         fs::create_directory(at + "/trainer.json");
       },
       "@/trainer.json is not a regular file"},
      {"tampered manifest",
       [](const std::string& at) {
         overwrite(at + "/manifest.json", replaced(read(at + "/manifest.json"), "\"step\": 500", "\"step\": 900"));
       },
       "@/manifest.json does not match its own checksum: it was changed or damaged"},
      {"truncated manifest", [](const std::string& at) { fs::resize_file(at + "/manifest.json", 100); },
       "@/manifest.json cannot be read: it is not valid JSON from byte 101 on"},
      {"empty manifest", [](const std::string& at) { fs::resize_file(at + "/manifest.json", 0); },
       "@/manifest.json cannot be read: it is not valid JSON from byte 1 on"},
      {"manifest of another program", [](const std::string& at) { overwrite(at + "/manifest.json", "{}"); },
       "@/manifest.json is not a manifest of a checkpoint"},
      {"newer format",
       [](const std::string& at) {
         overwrite(at + "/manifest.json",
                   replaced(read(at + "/manifest.json"), "\"format_version\": 1", "\"format_version\": 3"));
       },
       "@/manifest.json has format version 3, this program reads up to 2"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const TempDir dir;
      const std::string path = save(dir.path(), 500);
      c.damage(path);
      const auto result = verify_checkpoint(path);
      REQUIRE_FALSE(result.ok());
      CHECK(result.failure().message == replaced(c.message, "@", path));
    }
  }
}

TEST_CASE("every flipped bit of a manifest is found", "[artifact]") {
  const TempDir dir;
  const std::string text = read(save(dir.path(), 500) + "/manifest.json");
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    CAPTURE(at);
    CHECK_FALSE(parse_manifest(flipped, "manifest.json").ok());
  }
}

TEST_CASE("a manifest cannot name files outside of its folder", "[artifact]") {
  Manifest manifest;
  manifest.files.push_back({"../passwords", 1, checksum_of("x")});
  const auto result = parse_manifest(manifest_text(manifest), "m");
  REQUIRE_FALSE(result.ok());
  CHECK(result.failure().message == "m lists \"../passwords\", which is not a plain file name");
}

TEST_CASE("the newest checkpoint that verifies is taken, and what was skipped is named", "[artifact]") {
  const TempDir dir;
  save(dir.path(), 100);
  save(dir.path(), 200);
  fs::resize_file(save(dir.path(), 300) + "/trainer.json", 1);
  overwrite(save(dir.path(), 400) + "/manifest.json", "[");
  std::vector<std::string> skipped;
  const auto newest = newest_verified(dir.path(), skipped);
  REQUIRE(newest);
  CHECK(newest->step == 200);
  CHECK(skipped ==
        std::vector<std::string>{dir / "step-000400/manifest.json cannot be read: it is not valid JSON from byte 2 on",
                                 dir / "step-000300/trainer.json holds 1 bytes, its manifest says 13"});
}

TEST_CASE("no folder, an empty one and one of others hold no checkpoint", "[artifact]") {
  const TempDir dir;
  std::vector<std::string> skipped;
  CHECK_FALSE(newest_verified(dir / "none", skipped));
  CHECK_FALSE(newest_verified(dir.path(), skipped));
  fs::create_directory(dir / "notes");
  CHECK_FALSE(newest_verified(dir.path(), skipped));
  CHECK(skipped.empty());
  fs::create_directory(dir / "step-000900");
  CHECK_FALSE(newest_verified(dir.path(), skipped));
  CHECK(skipped == std::vector<std::string>{dir / "step-000900 holds no manifest.json"});
}

TEST_CASE("a link by a checkpoint's name is passed over, and that is said", "[artifact]") {
  const TempDir dir, other;
  const std::string moved = save(other.path(), 200);
  save(dir.path(), 100);
  fs::create_directory_symlink(moved, dir / "step-000200");
  std::vector<std::string> skipped;
  const auto newest = newest_verified(dir.path(), skipped);
  REQUIRE(newest);
  CHECK(newest->step == 100);
  CHECK(skipped == std::vector<std::string>{dir / "step-000200 is a link, not the folder of a checkpoint"});
  // Saved again: the link is put aside, what it leads to stays.
  save(dir.path(), 200);
  CHECK(verify_checkpoint(dir / "step-000200"));
  CHECK(fs::is_symlink(dir / "step-000200-aside-1"));
  CHECK(verify_checkpoint(moved));
}

TEST_CASE("order is by recorded branch and step, not by name", "[artifact]") {
  const TempDir dir;
  save(dir.path(), 1000);
  save(dir.path(), 900);
  fs::rename(dir / "step-000900", dir / "zz-renamed");
  save(dir.path(), 950, 1);
  std::vector<std::int64_t> steps;
  for (const CheckpointInfo& info : list_checkpoints(dir.path())) steps.push_back(info.step);
  CHECK(steps == std::vector<std::int64_t>{900, 1000, 950});
}

TEST_CASE("a step saved again replaces the old one", "[artifact]") {
  const TempDir dir;
  save(dir.path(), 100);
  save(dir.path(), 100, 1);
  CHECK(names(dir.path()) == std::vector<std::string>{"step-000100"});
  CHECK(verify_checkpoint(dir / "step-000100").value().fields.branch == 1);
}

TEST_CASE("what is pinned, or not ours, is put aside and not replaced", "[artifact]") {
  const TempDir dir;
  overwrite(save(dir.path(), 100) + "/pinned", "");
  fs::create_directory(dir / "step-000200");
  overwrite(dir / "step-000200/thesis.txt", "the only copy");
  save(dir.path(), 100, 1);
  save(dir.path(), 200, 1);
  CHECK(names(dir.path()) ==
        std::vector<std::string>{"step-000100", "step-000100-aside-1", "step-000200", "step-000200-aside-1"});
  CHECK(is_pinned(dir / "step-000100-aside-1"));
  CHECK(read(dir / "step-000200-aside-1/thesis.txt") == "the only copy");
}

TEST_CASE("a draft that is not committed leaves nothing, and begin clears what the dead left", "[artifact]") {
  const TempDir dir;
  {
    const auto draft = CheckpointWriter::begin(dir.path(), 7, 0).value();
    draft->add_text("trainer.json", "{}").value();
    REQUIRE(names(dir.path()).size() == 1);
    CHECK(list_checkpoints(dir.path()).empty());
  }
  CHECK(names(dir.path()).empty());

  // Process ids end at 2^22; init always lives.
  fs::create_directories(dir / ".step-000001.draft-99999999/deep/er");
  fs::create_directory(dir / ".step-000002.deleted-99999999");
  fs::create_directory(dir / ".step-000003.draft-1");
  fs::create_directory(dir / ".cache");
  save(dir.path(), 8);
  CHECK(names(dir.path()) == std::vector<std::string>{".cache", ".step-000003.draft-1", "step-000008"});
}

TEST_CASE("an ended process is dead, whether or not its parent has waited for it", "[artifact]") {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  fs::create_directory(dir / (".step-000001.draft-" + std::to_string(child)));
  save(dir.path(), 8);
  CHECK(names(dir.path()) == std::vector<std::string>{"step-000008"});
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a disk that is too full is refused before anything is written", "[artifact]") {
  const TempDir dir;
  class SmallDisk final : public Io {
   public:
    std::int64_t free_bytes(const std::string&) override { return 300'000'000; }
  } io;
  const auto draft = CheckpointWriter::begin(dir.path(), 500, 1'200'000'000, io);
  REQUIRE_FALSE(draft.ok());
  CHECK(draft.failure().message == "a checkpoint takes 1.2 GB, but " + dir.path() + " has 300.0 MB left");
  CHECK(draft.failure().hint ==
        "free some space there, or lower checkpoint.save_total_limit, then run the same command again");
  CHECK(draft.failure().exit_code == core::kExitResumable);
  CHECK(names(dir.path()).empty());
}

TEST_CASE("disk errors name the path", "[artifact]") {
  const TempDir dir;
  overwrite(dir / "file", "");
  const auto draft = CheckpointWriter::begin(dir / "file", 1, 0);
  REQUIRE_FALSE(draft.ok());
  CHECK(draft.failure().message == "cannot create folder " + (dir / "file") + ": file exists");
}

TEST_CASE("what the disk does not give back is never committed, not even over the same step", "[artifact]") {
  const TempDir dir;
  const std::string before = save(dir.path(), 10);
  const std::string text = read(before + "/trainer.json");
  class LyingDisk final : public Io {
   public:
    void sync_file(int handle, const std::string& path) override {
      Io::sync_file(handle, path);
      if (path.ends_with("trainer.json")) overwrite(path, "{\"step\": 11}");
    }
  } io;
  const auto draft = CheckpointWriter::begin(dir.path(), 10, 1000, io).value();
  draft->add_text("trainer.json", "{\"step\": 10}").value();
  ManifestFields fields;
  fields.run_id = "r1";
  const auto committed = draft->commit(fields, nullptr, 1);
  REQUIRE_FALSE(committed.ok());
  CHECK(committed.failure().message.find("trainer.json") != std::string::npos);
  CHECK(read(before + "/trainer.json") == text);
  CHECK(verify_checkpoint(before).ok());
}

TEST_CASE("a commit that met a full disk may be tried again", "[artifact]") {
  for (int refused = 1; refused <= 9; ++refused) {
    const TempDir dir;
    save(dir.path(), 10);
    class FullDisk final : public Io {
     public:
      explicit FullDisk(int at) : at_(at) {}
      int create(const std::string& path) override { return count(), Io::create(path); }
      void write(int handle, const std::string& path, const void* data, std::int64_t bytes) override {
        count();
        Io::write(handle, path, data, bytes);
      }
      void sync_file(int handle, const std::string& path) override { count(), Io::sync_file(handle, path); }
      void sync_dir(const std::string& path) override { count(), Io::sync_dir(path); }
      bool armed = false;

     private:
      void count() {
        if (armed && --at_ == 0) throw core::RunError("no space left", "", core::kExitResumable);
      }
      int at_;
    } io(refused);
    const auto draft = CheckpointWriter::begin(dir.path(), 10, 1000, io).value();
    draft->add_text("trainer.json", "{}").value();
    io.armed = true;
    ManifestFields fields;
    fields.run_id = "r1";
    core::Result<std::string> committed = draft->commit(fields, nullptr, 1);
    if (!committed) committed = draft->commit(fields, nullptr, 1);
    INFO("call " << refused);
    REQUIRE(committed.ok());
    CHECK(read(verify_checkpoint(committed.value()).ok() ? committed.value() + "/trainer.json" : "") == "{}");
  }
}

TEST_CASE("state of a later version is passed over for an older checkpoint", "[artifact]") {
  const TempDir dir;
  save(dir.path(), 10);
  const auto draft = CheckpointWriter::begin(dir.path(), 20, 1000).value();
  draft->add_text("trainer.json", "{\"format_version\": 2}").value();
  ManifestFields fields;
  fields.run_id = "r1";
  const std::string later = draft->commit(fields, nullptr, 1).value();
  std::vector<std::string> skipped;
  CHECK(newest_verified(dir.path(), skipped)->step == 10);
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0] == later + "/trainer.json has format version 2, this program reads up to 1");
}

}  // namespace
}  // namespace runner::artifact
