#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trackers {

/// A file that grows by whole records: leftovers of a crash after the last flush are truncated when it is reopened.
class RecordFile {
 public:
  /// Creates the folder if missing. `keep_bytes`: flushed size; 0 empties the file.
  RecordFile(const std::string& path, std::int64_t keep_bytes);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void append(std::string_view record) { buffer_.append(record); }
  /// Writes what was appended and adds it to the bytes to keep. TrackerError on disk errors; nothing is lost.
  void flush(bool durable);
  std::int64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  int descriptor_;
  std::int64_t bytes_;
  std::string buffer_;
};

/// The start of a file written by a run: the run's id marks its owner.
struct Ownership {
  std::string before, id, after;
};

/// Call before opening the file of a run. `keep_bytes` as for RecordFile. Moves the file of another run to PATH.ID.
/// TrackerError when the file is a user's own, which must not be emptied, and when a file to continue now belongs to
/// another run.
void claim_file(const std::string& path, const Ownership& owner, std::int64_t keep_bytes);

}  // namespace trackers
