#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace tests {

/// A folder of its own, gone with the object.
class TempDir {
 public:
  enum class On { kDisk, kMemory };
  /// Tests that make thousands of files, or that only wait for a disk, take memory where there is such a file system
  /// with room.
  explicit TempDir(On on = On::kDisk) {
    std::error_code error;
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = on == On::kMemory && std::filesystem::is_directory(memory, error) &&
                           std::filesystem::space(memory, error).available > kRoom_bytes && !error;
    std::string name = ((in_memory ? memory : std::filesystem::temp_directory_path()) / "roux-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  static constexpr std::uintmax_t kRoom_bytes = 1'000'000'000;

  std::string path_;
};

}  // namespace tests
