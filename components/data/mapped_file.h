#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

namespace components::data {

/// A memory-mapped file: pages are read on access, and the system may evict them at any time.
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

  /// RunError when the file was truncated since it was mapped.
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

/// Runs `work`, which reads mapped files. False when a mapped page could not be read (the file was truncated, or a read
/// failed), which the system reports by SIGBUS; `work` then stopped half-way, without destructors: it may only copy
/// numbers and own nothing. Thread-safe.
template <typename Work>
bool read_mapped(Work& work) {
  static_assert(std::is_trivially_destructible_v<Work>, "a jump out of it would skip destructors");
  return mapped::run_guarded([](void* context) { (*static_cast<Work*>(context))(); }, &work);
}

}  // namespace components::data
