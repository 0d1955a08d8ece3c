#include "trackers/io/owned_folder.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "runner/core/platform/files.h"
#include "trackers/io/tracker_data.h"

namespace trackers {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kOwnerBytesMax = 1000;
constexpr const char* kHint = "give each its own folder or key, or move that one away";

std::string owner_text(const OwnedFolder& folder) { return folder.run_id + " " + folder.tracker + "\n"; }

enum class Owner { kNothingThere, kUnknown, kThis, kAnother };

Owner owner_of(const OwnedFolder& folder) {
  std::error_code ignored;
  const std::string file = folder.path + "/" + kOwnerFile;
  if (fs::exists(fs::symlink_status(file, ignored))) {
    const auto text = runner::core::read_file(file, kOwnerBytesMax);
    return text && text.value() == owner_text(folder) ? Owner::kThis : Owner::kAnother;
  }
  const bool is_there = fs::exists(fs::symlink_status(folder.path, ignored)) ||
                        fs::exists(fs::symlink_status(folder.path + ".zip", ignored));
  return is_there ? Owner::kUnknown : Owner::kNothingThere;
}

TrackerError of_another(const OwnedFolder& folder, const char* what) {
  return {TrackerError::Remedy::kPause, folder.path + what, kHint};
}

}  // namespace

void OwnedFolder::begin() const {
  const Owner owner = owner_of(*this);
  if (owner == Owner::kAnother) throw of_another(*this, " belongs to another run or tracker");
  if (owner == Owner::kUnknown && !is_named_by_run) throw of_another(*this, " or its .zip is not of this run");
  // The new folder is renamed with its owner in it, and the former one is renamed before it is deleted: no crash leaves
  // a folder without an owner, and of two runs that begin here at the same time one is refused.
  const std::string mine = "-" + run_id + "-" + tracker, made = path + ".new" + mine, former = path + ".old" + mine;
  std::error_code error;
  fs::remove_all(made, error);
  fs::remove_all(former, error);
  runner::core::make_folders(made).value();
  runner::core::write_file_atomic(made + "/" + kOwnerFile, owner_text(*this)).value();
  if (owner != Owner::kNothingThere) {
    fs::rename(path, former, error);
    fs::remove_all(former, error);
    fs::remove(path + ".zip", error);
  }
  fs::rename(made, path, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove_all(made, ignored);
  if (owner_of(*this) == Owner::kAnother) throw of_another(*this, " belongs to another run or tracker");
  throw TrackerError(TrackerError::Remedy::kPause, "cannot create " + path + ": " + error.message());
}

void OwnedFolder::check() const {
  if (owner_of(*this) == Owner::kAnother) throw of_another(*this, " has been taken over by another run or tracker");
}

}  // namespace trackers
