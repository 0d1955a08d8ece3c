// Whatever happens to the files of a checkpoint is seen, said plainly, and the one before is taken instead.

#include <catch2/catch.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/retention.h"
#include "tests/support/checkpoints.h"
#include "tests/support/temp_dir.h"

namespace {

namespace artifact = runner::artifact;
namespace fs = std::filesystem;

using tests::TempDir;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// With all the kinds of files that a training saves, and a pin.
std::string save_like_a_training(const std::string& dir, std::int64_t step) {
  const std::vector<float> weights(5000, static_cast<float>(step));
  const std::vector<std::int64_t> counts(300, step);
  auto draft = artifact::CheckpointWriter::begin(dir, step, 0).value();
  draft
      ->add_safetensors("model.safetensors",
                        {{"blocks.0.weight", "F32", {50, 100}, weights.data(), 20000},
                         {"blocks.0.bias", "F32", {100}, weights.data(), 400}},
                        {{"format", "pt"}})
      .value();
  draft
      ->add_safetensors(
          "optimizer.safetensors",
          {{"exp_avg", "F32", {5000}, weights.data(), 20000}, {"step", "I64", {300}, counts.data(), 2400}}, {})
      .value();
  draft->add_safetensors("random_states_0.safetensors", {{"cpu", "I64", {300}, counts.data(), 2400}}, {}).value();
  draft->add_text("trainer.json", "{\"format_version\": 1, \"counters\": {\"step\": 300}}\n").value();
  artifact::ManifestFields fields{.branch = 3, .last_metric_row = 12, .trained_s = 1.5, .run_id = "mine"};
  fields.metrics = runner::core::Node::mapping();
  fields.metrics.set("val/loss", runner::core::Node::floating(0.25));
  const std::string path = draft->commit(fields, nullptr, 1'800'000'000'000).value();
  artifact::pin(path).value();
  return path;
}

struct Flip {
  std::size_t at;
  int bit;
};

/// Every bit of the first `head` bytes, and some of the others.
std::vector<Flip> flips_of(std::size_t bytes, std::size_t head, std::mt19937& random) {
  std::vector<Flip> flips;
  for (std::size_t at = 0; at < std::min(bytes, head); ++at) {
    for (int bit = 0; bit < 8; ++bit) flips.push_back({at, bit});
  }
  for (int i = 0; i < 500 && bytes > head; ++i) {
    flips.push_back({head + random() % (bytes - head), static_cast<int>(random() % 8)});
  }
  return flips;
}

}  // namespace

TEST_CASE("every flipped bit of a checkpoint is found, and the one before is taken", "[sim][artifact]") {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  const TempDir dir(TempDir::On::kMemory);
  save_like_a_training(dir.path(), 200);
  const std::string path = save_like_a_training(dir.path(), 300);
  int tried = 0, found = 0;
  for (const std::string& name : tests::names_in(path)) {
    if (name == "pinned") continue;
    const std::string file = path + "/" + name;
    const std::string whole = read(file);
    // Manifests and trainer.json in full; of tensors the header in full.
    const bool is_text = name.ends_with(".json");
    const std::size_t head =
        is_text ? whole.size() : 8 + static_cast<unsigned char>(whole[0]) + 256 * static_cast<unsigned char>(whole[1]);
    for (const Flip& flip : flips_of(whole.size(), head, random)) {
      std::string flipped = whole;
      flipped[flip.at] = static_cast<char>(flipped[flip.at] ^ (1 << flip.bit));
      write(file, flipped);
      std::vector<std::string> skipped;
      const auto newest = artifact::newest_verified(dir.path(), skipped, "mine");
      ++tried;
      const bool noticed = !artifact::verify_checkpoint(path).ok() && newest && newest->step == 200 &&
                           skipped.size() == 1 && skipped[0].find(file) == 0;
      found += noticed;
      if (noticed) continue;
      CAPTURE(file, flip.at, flip.bit);
      CHECK(noticed);
    }
    write(file, whole);
    REQUIRE(artifact::verify_checkpoint(path).ok());
  }
  std::printf("%d flips in %zu files, %d found\n", tried, tests::names_in(path).size() - 1, found);
  CHECK(tried > 2000);
  CHECK(found == tried);
}

TEST_CASE("what a pin's mark holds makes no difference", "[sim][artifact]") {
  const TempDir dir(TempDir::On::kMemory);
  const std::string path = save_like_a_training(dir.path(), 300);
  for (int byte = 0; byte < 256; ++byte) {
    write(path + "/pinned", std::string(1, static_cast<char>(byte)));
    CHECK(artifact::verify_checkpoint(path).ok());
    CHECK(artifact::is_pinned(path));
  }
}

TEST_CASE("files that are short, gone, too many or another's are named, and the one before is taken",
          "[sim][artifact]") {
  struct Case {
    const char* name;
    std::function<void(const std::string& path)> damage;
    const char* reason;  ///< `@` is the checkpoint
  };
  const auto replace = [](const std::string& file, const std::string& what, const std::string& by) {
    std::string text = read(file);
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    write(file, text.replace(at, what.size(), by));
  };
  const Case cases[] = {
      {"a truncated file", [](const std::string& path) { fs::resize_file(path + "/optimizer.safetensors", 1000); },
       "@/optimizer.safetensors holds 1,000 bytes, its manifest says "},
      {"an empty file", [](const std::string& path) { fs::resize_file(path + "/trainer.json", 0); },
       "@/trainer.json holds 0 bytes, its manifest says "},
      {"a longer file",
       [](const std::string& path) { write(path + "/trainer.json", read(path + "/trainer.json") + " "); },
       "@/trainer.json holds "},
      {"a missing file", [](const std::string& path) { fs::remove(path + "/random_states_0.safetensors"); },
       "@/random_states_0.safetensors is missing"},
      {"an extra file", [](const std::string& path) { write(path + "/model-00002-of-00002.safetensors", "?"); },
       "@/model-00002-of-00002.safetensors is not in the checkpoint's manifest"},
      {"an extra folder", [](const std::string& path) { fs::create_directory(path + "/old"); },
       "@/old is not in the checkpoint's manifest"},
      {"a file of another checkpoint",
       [](const std::string& path) {
         fs::copy_file(fs::path(path).parent_path() / "step-000200/model.safetensors", path + "/model.safetensors",
                       fs::copy_options::overwrite_existing);
       },
       "@/model.safetensors does not match its checksum in the manifest: it was changed or damaged"},
      {"files that changed places",
       [](const std::string& path) {
         fs::rename(path + "/model.safetensors", path + "/x");
         fs::rename(path + "/optimizer.safetensors", path + "/model.safetensors");
         fs::rename(path + "/x", path + "/optimizer.safetensors");
       },
       "@/model.safetensors holds "},
      {"no manifest", [](const std::string& path) { fs::remove(path + "/manifest.json"); }, "@ holds no manifest.json"},
      {"half a manifest", [](const std::string& path) { fs::resize_file(path + "/manifest.json", 300); },
       "@/manifest.json cannot be read: it is not valid JSON from byte 301 on"},
      {"zeros for a manifest", [](const std::string& path) { write(path + "/manifest.json", std::string(900, '\0')); },
       "@/manifest.json cannot be read: it is not valid JSON from byte 1 on"},
      {"another tool's manifest", [](const std::string& path) { write(path + "/manifest.json", "{\"files\": []}"); },
       "@/manifest.json is not a manifest of a checkpoint"},
      {"a manifest of a later version",
       [&](const std::string& path) {
         replace(path + "/manifest.json", "\"format_version\": 1", "\"format_version\": 3");
       },
       "@/manifest.json has format version 3, this program reads up to 2"},
      {"a manifest that was edited",
       [&](const std::string& path) { replace(path + "/manifest.json", "\"step\": 300", "\"step\": 900"); },
       "@/manifest.json does not match its own checksum: it was changed or damaged"},
      {"another run's checkpoint",
       [](const std::string& path) {
         fs::remove_all(path);
         tests::save_checkpoint(fs::path(path).parent_path().string(), {.step = 300, .branch = 9, .run_id = "other"});
       },
       "@ belongs to run other, not to this one"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const TempDir dir(TempDir::On::kMemory);
      save_like_a_training(dir.path(), 200);
      const std::string path = save_like_a_training(dir.path(), 300);
      c.damage(path);
      std::vector<std::string> skipped;
      const auto newest = artifact::newest_verified(dir.path(), skipped, "mine");
      REQUIRE(newest);
      CHECK(newest->step == 200);
      std::string reason = c.reason;
      reason.replace(0, 1, path);
      REQUIRE(skipped.size() == 1);
      CHECK(skipped[0].substr(0, reason.size()) == reason);
    }
  }
}
