#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "runner/core/platform/files.h"
#include "runner/core/platform/program_path.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "tests/support/process/variables.h"
#include "tests/support/temp_dir.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRest =
    "model: {type: mlp, hidden: [8]}\nloss: mse\noptimizer: sgd\n"
    "data: {train: {type: synthetic, task: regression}}\n"
    "training: {max_steps: 10, micro_batch_size: 4}\n";
constexpr const char* kCommand = "callbacks: [{type: command, on: end, run: [a]}]\n";
constexpr const char* kPlugin = "trackers: [{type: plugin, command: [a]}]\n";

void write(const std::string& path, const std::string& text) {
  core::make_folders(fs::path(path).parent_path().string()).value();
  core::write_file_atomic(path, text).value();
}

std::string messages_of(const std::string& path) {
  core::Diagnostics diagnostics;
  load_recipe(path, {}, registry::Registry::builtin(), diagnostics);
  return core::render(diagnostics, {.color = false, .excerpts = false});
}

}  // namespace

TEST_CASE("a recipe that was downloaded starts no programs, however it is named", "[recipe][programs]") {
  const tests::TempDir folder;
  const std::string hub = folder / "hub", own = folder / "own";
  const tests::Variables variables({{"HF_HUB_CACHE", hub}, {"ROUX_CACHE_DIR", folder / "roux"}});
  const std::string hint =
      "  hint: read the recipe; if you trust the program, copy the files of the recipe to a folder of your own\n";
  const std::string blob = hub + "/models--a--b/blobs/1", snapshot = hub + "/models--a--b/snapshots/c/r.yaml";
  write(blob, std::string(kRest) + kCommand);
  fs::create_directories(fs::path(snapshot).parent_path());
  fs::create_symlink("../../blobs/1", snapshot);
  const std::string told = ":6:13: error: callbacks[0] runs a program, and ";
  SECTION("in the cache of the Hub") {
    CHECK(messages_of(snapshot) == snapshot + told + snapshot + " was downloaded\n" + hint);
  }
  SECTION("by a link of one's own") {
    fs::create_directories(own);
    fs::create_symlink(snapshot, own + "/link.yaml");
    CHECK(messages_of(own + "/link.yaml") == own + "/link.yaml" + told + own + "/link.yaml was downloaded\n" + hint);
  }
  SECTION("as a file that another extends, whichever of them has the program") {
    write(folder / "roux/files/base.yaml", kRest);
    write(own + "/r.yaml", "extends: ../roux/files/base.yaml\n" + std::string(kPlugin));
    CHECK(messages_of(own + "/r.yaml") == own + "/r.yaml:2:12: error: trackers[0] runs a program, and " + own +
                                              "/../roux/files/base.yaml was downloaded\n" + hint);
  }
  SECTION("but it may without programs, and a copy may with one") {
    write(folder / "roux/files/plain.yaml", kRest);
    CHECK(messages_of(folder / "roux/files/plain.yaml").empty());
    fs::create_directories(own);
    fs::copy_file(snapshot, own + "/copy.yaml");
    CHECK(messages_of(own + "/copy.yaml").empty());
  }
}

TEST_CASE("ROUX_COMMANDS has to say what it means where a recipe names a command", "[recipe][programs]") {
  const tests::TempDir folder;
  const std::string with = folder / "with.yaml", without = folder / "without.yaml";
  write(with, std::string(kRest) + kCommand);
  write(without, kRest);
  for (const char* word : {"", "off", "OFF", "0", "false", "No"}) {
    const tests::Variables variables(tests::Variables::Values{{core::kProgramsVariable, word}});
    CHECK(messages_of(with).empty());
    CHECK(core::starts_programs() == std::string(word).empty());
  }
  const tests::Variables variables(tests::Variables::Values{{core::kProgramsVariable, "maybe"}});
  CHECK(messages_of(with) == with +
                                 ":6:13: error: ROUX_COMMANDS is neither off, 0, false nor no, which start no program\n"
                                 "  hint: set it to off, or unset it to start programs\n");
  CHECK(messages_of(without).empty());
}

}  // namespace runner::resolve
