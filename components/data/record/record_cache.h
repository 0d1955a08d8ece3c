#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "components/data/record/record_encoder.h"
#include "runner/core/node.h"

namespace components::data {

/// RecordSetOptions::settings of a set of texts: its block, without what decides which records are read and what
/// becomes of their sequences, and what the tokenizer is made of. "" when a file of the tokenizer cannot be read.
std::string encoding_settings(const runner::core::Node& block, const tokenizer::Tokenizer& tokenizer);

/// Records of a set as they were encoded, kept for the next process that encodes the same: each trial of a sweep reads
/// the same set. They lie in `records` in core::cache_dir(), in a file whose name is a checksum of the content of the
/// set's files, the range, the settings and this program's source; the files that were used last stay, up to
/// kFolderMax. A cache never fails: what cannot be read or written is encoded again. Files appear whole, and a damaged
/// one is not used. ROUX_RECORD_CACHE=0 turns it off.
class RecordCache {
 public:
  /// Of the records [begin, end) of the files, which have `bytes` of text. Reads the files for their checksums.
  RecordCache(const RecordEncoder& encoder, std::int64_t begin, std::int64_t end, std::int64_t bytes);

  /// Calls `use` for all records in their order. False when they are not kept: then nothing was called.
  bool replay(const std::function<void(const EncodedRecord&)>& use) const;
  /// The next one of the records, to be kept.
  void add(const EncodedRecord& record);
  /// Keeps them, when all were added and no file has changed meanwhile.
  void store();

  static constexpr std::int64_t kWorthBytes = std::int64_t{4} << 20;  ///< less text is encoded in a second
  static constexpr std::int64_t kFolderMax = std::int64_t{8} << 30;
  static constexpr std::int64_t kFileMax = std::int64_t{2} << 30;

 private:
  std::string path() const;
  void make_room(std::int64_t bytes) const;

  const RecordEncoder& encoder_;
  std::int64_t wanted_ = 0, added_ = 0;  // records
  std::string key_;                      // "": nothing is kept
  std::string states_;                   // of the files, when they were read for the key
  std::string content_;
};

}  // namespace components::data
