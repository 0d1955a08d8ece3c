#include "runner/review/checkpoint/checkpoints.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "runner/artifact/checkpoint_dir.h"
#include "tests/support/temp_dir.h"

namespace runner::review {
namespace {

namespace fs = std::filesystem;
using tests::TempDir;

void save(const std::string& dir, std::int64_t step) {
  const auto draft = artifact::CheckpointWriter::begin(dir, step, 0).value();
  draft->add_text("trainer.json", "{}").value();
  draft->commit({}, nullptr, 1000).value();
}

TEST_CASE("checkpoints are listed and verified, damaged ones too", "[cli]") {
  const TempDir dir;
  const std::string folder = dir / "checkpoints";
  save(folder, 100);
  save(folder, 200);
  save(folder, 300);
  std::ofstream(folder + "/step-000100/pinned") << "";
  std::ofstream(folder + "/step-000200/trainer.json") << "[]";
  std::ofstream(folder + "/step-000300/manifest.json", std::ios::trunc) << "{";
  const std::string broken = folder + "/step-000300/manifest.json cannot be read: it is not valid JSON from byte 2 on";

  CHECK(checkpoints_list(folder, terminal::Terminal{}, 61000) ==
        "checkpoint   step  branch  size  saved\n"
        "step-000100   100       0   2 B  60 s ago  pinned\n"
        "step-000200   200       0   2 B  60 s ago\n"
        "damaged: " +
            broken + "\n");

  const CheckpointsReport verdict = checkpoints_verify(folder);
  CHECK(verdict.text ==
        "step-000100: intact, 1 file, 2 B\n"
        "step-000200: damaged: " +
            folder +
            "/step-000200/trainer.json does not match its checksum in the manifest: it was changed or "
            "damaged\n"
            "step-000300: damaged: " +
            broken + "\n");
  CHECK(verdict.whole == 1);
  CHECK(verdict.damaged == 2);
  CHECK(checkpoints_list(folder + "/step-000100", terminal::Terminal{}, 61000) ==
        "checkpoint   step  branch  size  saved\n"
        "step-000100   100       0   2 B  60 s ago  pinned\n");
  CHECK(checkpoints_verify(folder + "/step-000100").text == "step-000100: intact, 1 file, 2 B\n");
}

TEST_CASE("an empty folder has no checkpoint", "[cli]") {
  const TempDir dir;
  CHECK(checkpoints_list(dir.path(), terminal::Terminal{}, 0) == "there is no checkpoint in " + dir.path() + "\n");
  CHECK(checkpoints_verify(dir.path()).text.empty());
}

TEST_CASE("a folder of checkpoints is found by the run's path or its own", "[cli]") {
  const TempDir dir;
  save(dir / "checkpoints", 100);
  const core::Clock& clock = core::system_clock();
  CHECK(checkpoints_folder("none", dir.path(), clock).value() == dir / "checkpoints");
  CHECK(checkpoints_folder("none", dir / "checkpoints", clock).value() == dir / "checkpoints");
  CHECK(checkpoints_folder("none", dir / "checkpoints/step-000100", clock).value() == dir / "checkpoints/step-000100");
  CHECK_FALSE(checkpoints_folder(dir / "runs", "tiny", clock).ok());
}

}  // namespace
}  // namespace runner::review
