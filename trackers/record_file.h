#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trackers {

/// A file that grows by whole records: what a crash left behind the last flush is cut off when it is opened again.
class RecordFile {
 public:
  /// Makes the folder where it is missing. `keep_bytes`: what was flushed the last time; 0 empties the file.
  RecordFile(const std::string& path, std::int64_t keep_bytes);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void append(std::string_view record) { buffer_.append(record); }
  /// Writes what was appended; then its bytes are those to keep. TrackerError when the disk refuses; nothing is lost.
  void flush(bool durable);
  std::int64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  int descriptor_;
  std::int64_t bytes_;
  std::string buffer_;
};

/// Before a file is written from its beginning: TrackerError when it holds anything else than what this run has written
/// there, which begins so. Another run's points, or what a person keeps there, are not ours to empty.
void require_own(const std::string& path, std::string_view beginning);

}  // namespace trackers
