#pragma once

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace runner::core {

/// Unpacks a file of gzip members, one behind the other (RFC 1952). Unlike zlib's gzread() it passes over nothing: what
/// follows a member and is none, but for zeros that fill up a block, is an error. A file without a byte is empty.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// How many of `size` bytes were unpacked; 0 at the end or after a problem.
  std::size_t read(char* to, std::size_t size);
  /// `cannot read it: ...`, `the compressed file is cut short`, `the compressed file is damaged: ...`; "" when all is
  /// well so far.
  const std::string& problem() const { return problem_; }

 private:
  struct State;

  bool fill();
  bool begin_member();

  std::ifstream file_;
  std::unique_ptr<State> state_;
  std::vector<char> packed_;
  bool inside_ = false;  ///< of a member
  bool began_ = false;   ///< one was there
  std::string problem_;
};

}  // namespace runner::core
