#pragma once

#include <string>

namespace trackers {

/// The file that says whose a folder is. No name of safe_name() begins with a dot, and zip_folder() leaves it out.
inline constexpr const char* kOwnerFile = ".tracker";

/// A folder that one tracker of one run writes, and packs into `path` + ".zip". Another run, a second tracker of the
/// same run or a user may have named the same place: what they have there stays.
struct OwnedFolder {
  std::string path;
  std::string run_id, tracker;  ///< the owner
  bool is_named_by_run = true;  ///< the path follows from the run's id: without an owner it is of an earlier version

  /// Creates the folder, empty, and deletes what the same owner has there, its archive included. TrackerError where it
  /// is another's.
  void begin() const;
  /// Before the folder is written again. TrackerError where it is another's by now.
  void check() const;
};

}  // namespace trackers
