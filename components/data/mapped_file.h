#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

namespace components::data {

/// A file as memory: pages are read when they are touched, and the system may take them back at any time.
class MappedFile {
 public:
  /// RunError names a file that cannot be opened or mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  ///< bytes, when it was mapped
  const unsigned char* bytes() const { return bytes_; }

  /// RunError when the file has become shorter since it was mapped.
  void check_whole() const;

 private:
  std::string path_;
  std::int64_t size_ = 0;
  const unsigned char* bytes_ = nullptr;
  int descriptor_ = -1;
};

namespace mapped {
bool run_guarded(void (*work)(void*), void* context);
}

/// Runs `work`, which reads mapped files. False when the disk could not give what is mapped (the file has become
/// shorter, or a read failed), which the system tells by the signal SIGBUS and not by an error; `work` then stopped
/// half-way, without its destructors: it copies numbers and owns nothing. Several threads may do this at once.
template <typename Work>
bool read_mapped(Work& work) {
  static_assert(std::is_trivially_destructible_v<Work>, "nothing would be given back after a jump out of it");
  return mapped::run_guarded([](void* context) { (*static_cast<Work*>(context))(); }, &work);
}

}  // namespace components::data
