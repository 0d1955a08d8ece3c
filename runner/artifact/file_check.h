#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/throttle.h"
#include "runner/core/result.h"

namespace runner::artifact {

struct CheckOptions {
  bool from_disk = false;  ///< past the page cache, where the file system can: the disk is asked, not what it was told
  Throttle* pace = nullptr;  ///< rests between pieces; null goes as fast as it can
};

/// Reads a file and compares it with what its manifest says. Failure says how it differs, in the words that a user
/// sees.
core::Result<void> verify_file(const std::string& path, const FileEntry& recorded, const CheckOptions& options = {});

/// Whether it is there as a regular file of the recorded size; Failure in the same words as verify_file.
core::Result<void> check_size(const std::string& path, const FileEntry& recorded);

/// Gives the bytes of a file their places.
class FileKeeper {
 public:
  virtual ~FileKeeper() = default;
  /// Where the next bytes of the file go, at most `left` of them, at least one. They are all there when it is asked
  /// again, or when the reading has ended. What it throws ends the reading.
  virtual std::span<char> room_for(std::int64_t left) = 0;
};

/// verify_file() that keeps what it reads. After a Failure what was kept is of no worth.
core::Result<void> keep_file(const std::string& path, const FileEntry& recorded, FileKeeper& keeper);

}  // namespace runner::artifact
