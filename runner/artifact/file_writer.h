#pragma once

#include <cstdint>
#include <string>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/aligned_bytes.h"
#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/io/throttle.h"

namespace runner::artifact {

/// One new file, written from front to back at the speed of the disk, its checksum taken from the bytes in memory.
/// Small pieces are gathered; large ones go straight from where they lie. RunError as Io says; a file that was not
/// finished is closed and left for the draft to delete.
class FileWriter {
 public:
  struct Options {
    std::int64_t bytes = 0;    ///< that the file will have; reserved on the disk first
    bool direct = false;       ///< past the page cache, where the file system can and the file is large
    Throttle* pace = nullptr;  ///< rests between pieces; null goes as fast as it can
  };
  FileWriter(Io& io, std::string path, const Options& options);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void append(const void* data, std::int64_t bytes);
  /// Writes out, fsyncs and closes. `name` is for the entry only.
  FileEntry finish(const std::string& name);

 private:
  void gather(const char* data, std::int64_t bytes);
  void flush();
  void write_out(const char* data, std::int64_t bytes);

  Io& io_;
  std::string path_;
  int handle_;
  bool direct_ = false;
  Throttle* pace_;
  std::int64_t chunk_;
  Checksum checksum_;
  AlignedBytes gathered_;
  std::int64_t gathered_bytes_ = 0;
  std::int64_t written_ = 0;
  std::int64_t started_ = 0;
};

}  // namespace runner::artifact
