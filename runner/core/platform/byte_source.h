#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "runner/core/packed/packed_file.h"

namespace runner::core {

/// The bytes of a file one after the other; a compressed one (is_packed()) is unpacked on the way.
class ByteSource {
 public:
  /// Reads from `begin` on, a place in the unpacked bytes. A compressed file is unpacked up to there.
  explicit ByteSource(const std::string& path, std::int64_t begin = 0);

  /// How many of `size` bytes were read; 0 at the end or after a problem.
  std::size_t read(char* to, std::size_t size);
  /// Why the file could not be read to its end; "" when it was.
  const std::string& problem() const { return packed_ != nullptr ? packed_->problem() : problem_; }

 private:
  void pass_over(std::int64_t bytes);

  std::ifstream plain_;
  std::unique_ptr<PackedFile> packed_;
  std::string problem_;
};

}  // namespace runner::core
