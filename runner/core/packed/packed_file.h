#pragma once

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace runner::core {

/// The bytes of a compressed file, unpacked from front to back, in as much memory as the format asks.
class PackedFile {
 public:
  virtual ~PackedFile() = default;
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  /// How many of `size` bytes were unpacked; 0 at the end or after a problem.
  virtual std::size_t read(char* to, std::size_t size) = 0;
  /// `cannot read it: ...`, `the compressed file is cut short`, `the compressed file is damaged: ...`; "" when all is
  /// well so far.
  const std::string& problem() const { return problem_; }

 protected:
  explicit PackedFile(const std::string& path);

  /// The next bytes as they are in the file, until the next call; none at its end, or after a problem.
  std::string_view next_packed();

  std::string problem_;

 private:
  std::ifstream file_;
  std::vector<char> packed_;
};

/// The endings of names of compressed files: `.gz` and `.zst`.
bool is_packed(std::string_view path);
/// The name without such an ending, `a.jsonl` of `a.jsonl.gz`; the name itself where it has none.
std::string_view without_packed_ending(std::string_view path);

/// For a path that is_packed().
std::unique_ptr<PackedFile> open_packed(const std::string& path);

}  // namespace runner::core
