#include "runner/artifact/io/output_place.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "runner/core/error.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFilesOfCheckpoint[] = {"manifest.json", "trainer.json"};  // manifest.h is above this folder
constexpr int kLinksMax = 40;                                                    // as Linux allows

/// Where `path` leads to. A link to what does not exist yet is followed as well: writing to it makes its target.
fs::path followed(const std::string& path) {
  std::error_code failed;
  fs::path place = fs::absolute(path, failed);
  for (int i = 0; i < kLinksMax && fs::is_symlink(place, failed); ++i) {
    place = place.parent_path() / fs::read_symlink(place, failed);
  }
  fs::path whole = fs::weakly_canonical(place, failed);
  if (failed) whole = place.lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

bool is_run(const fs::path& folder) {
  std::error_code failed;
  return fs::exists(folder / "run.db", failed);
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code failed;
  return std::all_of(std::begin(kFilesOfCheckpoint), std::end(kFilesOfCheckpoint),
                     [&](const char* file) { return fs::exists(folder / file, failed); });
}

core::Failure refusal(const std::string& path, const std::string& what, const fs::path& folder) {
  const std::string where = followed(path) == folder ? "it is " + what : "it is in " + folder.string() + ", " + what;
  return {"cannot write to " + path + ": " + where, "name a place outside of runs and checkpoints", core::kExitUsage};
}

}  // namespace

core::Result<void> check_output_place(const std::string& path) {
  for (fs::path folder = followed(path); folder.has_relative_path(); folder = folder.parent_path()) {
    if (is_checkpoint(folder)) return refusal(path, "a checkpoint", folder);
    if (folder.filename() == "checkpoints" && is_run(folder.parent_path()))
      return refusal(path, "the checkpoints of a run", folder);
  }
  return {};
}

core::Result<void> check_output_folder(const std::string& path) {
  if (const fs::path folder = followed(path); is_run(folder)) return refusal(path, "the folder of a run", folder);
  return check_output_place(path);
}

}  // namespace runner::artifact
