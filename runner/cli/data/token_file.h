#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace runner::cli {

/// How a file holds ids.
struct TokenLayout {
  std::int64_t token_bytes = 2;  ///< 2 or 4, little-endian
  bool numpy = false;            ///< behind a NumPy header of kNumpyHeader bytes

  static constexpr std::int64_t kNumpyHeader = 128;
  std::int64_t header_bytes() const { return numpy ? kNumpyHeader : 0; }
  const char* dtype() const { return token_bytes == 2 ? "uint16" : "uint32"; }
};

/// Keeps other processes from writing the same output, by an empty file OUTPUT.lock. RunError when one does, or the
/// file cannot be made or is another program's. A killed process leaves the file behind, but not the lock.
class OutputLock {
 public:
  explicit OutputLock(const std::string& output);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Files of ids, one after the other.
class TokenFile {
 public:
  /// Nothing is opened yet.
  explicit TokenFile(TokenLayout layout);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  /// Makes a file. RunError when it cannot be written or something is there.
  void create(const std::string& path);
  /// Keeps the first `tokens` that an earlier call has left. RunError when the file cannot be written or has fewer.
  void resume(const std::string& path, std::int64_t tokens);
  bool is_open() const { return descriptor_ >= 0; }
  void append(std::span<const std::int32_t> ids);
  std::int64_t tokens() const { return tokens_; }
  /// Makes sure that all of it is on the disk.
  void sync();
  /// Completes and closes the file.
  void finish();
  /// Removes an open file.
  void discard();

 private:
  void begin();
  void flush();
  void write_all(const char* data, std::size_t size);
  void write_header();
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  TokenLayout layout_;
  int descriptor_ = -1;
  std::int64_t tokens_ = 0;
  std::vector<char> buffer_;
};

/// The header of a one-dimensional NumPy array, kNumpyHeader bytes.
std::string numpy_header(std::int64_t tokens, const TokenLayout& layout);

}  // namespace runner::cli
