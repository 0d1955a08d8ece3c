#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace tests {

/// Counts what happens to the files below a folder: a moment of another process that does not depend on how fast it is.
class FileEvents {
 public:
  explicit FileEvents(const std::filesystem::path& folder);  ///< which is there
  ~FileEvents();
  FileEvents(const FileEvents&) = delete;
  FileEvents& operator=(const FileEvents&) = delete;

  /// Blocks until something was made, written or renamed `count` times; false when nothing more happens for a minute.
  bool wait_for(int count);

 private:
  void watch(const std::filesystem::path& folder);

  int descriptor_ = -1;
  int seen_ = 0;
  std::map<int, std::filesystem::path> folders_;  ///< by watch
};

}  // namespace tests
