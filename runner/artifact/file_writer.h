#pragma once

#include <cstdint>
#include <string>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/aligned_bytes.h"
#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/io/throttle.h"

namespace runner::artifact {

/// Writes one new file sequentially at the speed of the disk, with a checksum of the bytes in memory. Buffers small
/// pieces; writes large ones directly. RunError as in Io; an unfinished file is closed and left for the draft to
/// delete.
class FileWriter {
 public:
  struct Options {
    std::int64_t bytes = 0;        ///< final size; reserved on the disk first
    bool direct = false;           ///< bypass the page cache, if the file system can and the file is large
    Throttle* throttle = nullptr;  ///< throttles writing; null: full speed
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
  Throttle* throttle_;
  std::int64_t chunk_;
  Checksum checksum_;
  AlignedBytes gathered_;
  std::int64_t gathered_bytes_ = 0;
  std::int64_t written_ = 0;
  std::int64_t started_ = 0;
};

}  // namespace runner::artifact
