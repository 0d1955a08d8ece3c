#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trackers/io/record_file.h"

namespace trackers {

/// The file of an offline run of W&B: a header, then records in the frames of LevelDB's log, with the CRC-32 of zlib.
/// Its tools read it up to the last whole record.
class WandbFile {
 public:
  /// As RecordFile: 0 begins a new one.
  WandbFile(const std::string& path, std::int64_t keep_bytes);

  void append(std::string_view record);
  void flush(bool durable) { file_.flush(durable); }
  std::int64_t bytes() const { return file_.bytes(); }  ///< that were flushed

 private:
  void append_bytes(std::string_view bytes);

  RecordFile file_;
  std::int64_t offset_;  ///< where the next byte will lie
};

}  // namespace trackers
