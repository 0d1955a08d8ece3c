#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/checksum.h"
#include "runner/artifact/io.h"

namespace runner::artifact {

/// One new file, written from front to back at the speed of the disk: small pieces are gathered, large ones go straight
/// from where they lie, and the checksum is taken while they are in the cache. RunError as Io says; a file that was not
/// finished is closed and left for the draft to delete.
class FileWriter {
 public:
  FileWriter(Io& io, std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void append(const void* data, std::int64_t bytes);
  /// Writes out, fsyncs and closes. `name` is for the entry only.
  FileEntry finish(const std::string& name);

 private:
  void flush();
  void write_out(const char* data, std::int64_t bytes);

  Io& io_;
  std::string path_;
  int handle_;
  Checksum checksum_;
  std::vector<char> gathered_;
  std::int64_t written_ = 0;
  std::int64_t started_ = 0;
};

/// Whether it is there as a regular file of the recorded size; Failure in the same words as verify_file.
core::Result<void> check_size(const std::string& path, const FileEntry& recorded);

/// Reads a file again and compares. Failure says how it differs, in the words that a user sees.
core::Result<void> verify_file(const std::string& path, const FileEntry& recorded);

}  // namespace runner::artifact
