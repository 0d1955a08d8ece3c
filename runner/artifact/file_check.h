#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/throttle.h"
#include "runner/core/result.h"

namespace runner::artifact {

struct CheckOptions {
  bool from_disk = false;        ///< bypass the page cache if the file system can, to check the disk itself
  Throttle* throttle = nullptr;  ///< throttles reading; null: full speed
};

/// Reads a file and compares it with what its manifest says. The Failure names the difference, in the words that a user
/// sees.
core::Result<void> verify_file(const std::string& path, const FileEntry& recorded, const CheckOptions& options = {});

/// Whether it is a regular file of the recorded size; Failure in the same words as verify_file.
core::Result<void> check_size(const std::string& path, const FileEntry& recorded);

/// Provides the memory for the bytes of a file.
class FileSink {
 public:
  virtual ~FileSink() = default;
  /// Destination of the next bytes of the file, at most `left` of them, at least one. They are complete at the next
  /// call, or when reading has ended. An exception ends reading.
  virtual std::span<char> buffer_for(std::int64_t left) = 0;
};

/// verify_file() that keeps what it reads. Discard it after a Failure.
core::Result<void> read_verified(const std::string& path, const FileEntry& recorded, FileSink& keeper);

}  // namespace runner::artifact
