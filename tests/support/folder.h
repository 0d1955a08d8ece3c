#pragma once

#include <filesystem>
#include <string>

namespace tests {

/// An empty folder that is the current one while this lives: paths in recipes and messages are then short and the same
/// on every machine. Removed with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Writes `content` into `path`, which may name folders that do not exist yet.
  void write(const std::string& path, const std::string& content) const;

 private:
  std::filesystem::path before_;
  std::filesystem::path path_;
};

}  // namespace tests
