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

/// How a file begins that a run has written: by the run's id its owner is known.
struct Ownership {
  std::string before, id, after;
};

/// To be called before the file of a run is opened. `keep_bytes` as for RecordFile. What another run has written there
/// is moved aside, to PATH.ID. TrackerError where a person keeps something there, which is not ours to empty, and where
/// a file that is gone on with has become another's.
void claim_file(const std::string& path, const Ownership& owner, std::int64_t keep_bytes);

}  // namespace trackers
