#include "runner/artifact/io/output_place.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "runner/core/error.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;
using tests::TempDir;

void make_file(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "{}";
}

TEST_CASE("what a command writes lies in no checkpoint, by whatever path", "[artifact][output_place]") {
  const TempDir dir;
  const std::string run = dir / "runs/t-1", checkpoint = run + "/checkpoints/step-000010", copy = dir / "copies/best";
  make_file(run + "/run.db");
  for (const std::string& folder : {checkpoint, copy}) {
    make_file(folder + "/manifest.json");
    make_file(folder + "/trainer.json");
  }
  make_file(dir / "site/manifest.json");
  make_file(dir / "checkpoints/notes");
  fs::create_directory_symlink(checkpoint, dir / "link");
  fs::create_symlink(checkpoint + "/new.txt", dir / "to-new");
  fs::create_symlink("to-new", dir / "to-link");

  struct Case {
    std::string path;
    bool file_is_fine, folder_is_fine;
  };
  const Case cases[] = {
      {checkpoint, false, false},
      {checkpoint + "/", false, false},
      {checkpoint + "/below/x.jsonl", false, false},
      {run + "/checkpoints", false, false},
      {run + "/checkpoints/exported", false, false},
      {run + "/media/../checkpoints/step-000010", false, false},
      {dir / "link", false, false},
      {dir / "link/x", false, false},
      {dir / "link/../new", false, false},  // in `checkpoints`, not beside the link
      {dir / "to-new", false, false},
      {dir / "to-link", false, false},
      {copy, false, false},
      {copy + "/../best/x", false, false},
      {run, true, false},
      {run + "/.", true, false},
      {run + "/export", true, true},
      {checkpoint + "/../../export", true, true},
      {dir / "site/x", true, true},
      {dir / "checkpoints/x", true, true},
      {dir / "copies", true, true},
      {"not/yet/made", true, true},
      {"/", true, true},
      {"", true, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.path);
    const core::Result<void> file = check_output_place(c.path), folder = check_output_folder(c.path);
    CHECK(file.ok() == c.file_is_fine);
    CHECK(folder.ok() == c.folder_is_fine);
    if (folder.ok()) continue;
    CHECK(folder.failure().exit_code == core::kExitUsage);
    CHECK(folder.failure().message.starts_with("cannot write to " + c.path + ": it is "));
    CHECK(!folder.failure().hint.empty());
  }
}

}  // namespace
}  // namespace runner::artifact
