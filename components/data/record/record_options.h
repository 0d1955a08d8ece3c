#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/data/record/record_source.h"
#include "components/data/record/sequence.h"
#include "components/data/record/sequence_rows.h"
#include "components/data/text_files.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

enum class LongRecord { kCut, kDrop, kError };
enum class BadRecord { kError, kSkip };

/// What a set of records is made of, in memory or as a stream.
struct RecordSetOptions {
  std::vector<TextFile> files;
  SplitRange share;                         ///< of the records of all files
  std::optional<std::int64_t> max_seq_len;  ///< in ids
  /// The same of what a decoder reads; nothing: max_seq_len is of both.
  std::optional<std::int64_t> max_target_len = {};
  LongRecord too_long = LongRecord::kCut;
  /// Of kDesirable each is one with a label, or a pair, and becomes rows as add_other_completions() makes them. All but
  /// kNone and those in place: not with `packing`.
  LabelKind labels = LabelKind::kNone;
  /// Several records in one row of up to max_seq_len ids, first fit in the order of the files; batches have kPositions.
  bool packing = false;
  RowFill fill;
  bool cut_left = false;  ///< a record that is too long loses its beginning
  BadRecord on_bad_record = BadRecord::kError;
  /// What to do where the files do not fit into memory.
  const char* if_too_large = "use fewer or smaller files, or token files";
  std::int64_t shuffle_buffer = 1;         ///< records that a stream draws from when it is shuffled
  bool always_mask = false;                ///< batches have a mask even where it is true everywhere
  std::optional<std::int64_t> vocab_size;  ///< what ids are below; nothing: that of the training set or the files
  const char* units = "ids";               ///< what a record is made of, for messages
  /// Makes a sequence of a record. Its failure is reported with file and line. `vocab_size`: what ids have to be below.
  /// Called by several threads.
  std::function<runner::core::Result<Sequence>(const std::string& record, std::int64_t vocab_size)> parse;
  /// A file that is read by columns gives the texts of `format.text_field` to `parse_text`, which may not fail
  /// otherwise than `parse` of a record that has it alone.
  RecordFormat format;
  std::function<runner::core::Result<Sequence>(const std::string& text)> parse_text;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  ///< for text of ids; may be null
  std::vector<std::string> read_beside;  ///< further files that sequences depend on, such as a chat template
  /// What else sequences depend on, beside the records: encoding_settings(). "": they are not kept for other processes.
  std::string settings;

  /// Records are texts of this one: its vocabulary, and where it fills and cuts.
  void use(std::shared_ptr<const tokenizer::Tokenizer> its);
};

}  // namespace components::data
