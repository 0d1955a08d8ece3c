#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/data/language/id_rows.h"
#include "components/data/language/ids_line.h"
#include "components/data/text_files.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

enum class LongLine { kCut, kDrop, kError };
enum class BadRecord { kError, kSkip };

struct IdLinesOptions {
  std::vector<TextFile> files;
  PercentRange share;                       ///< of the lines of all files
  std::optional<std::int64_t> max_seq_len;  ///< in ids
  LongLine too_long = LongLine::kCut;
  /// Several lines in one row of up to max_seq_len ids, first fit in the order of the files; batches have kPositions.
  bool packing = false;
  RowFill fill;
  bool cut_left = false;  ///< a line that is too long loses its beginning
  BadRecord on_bad_record = BadRecord::kError;
  /// What to do where the files do not fit into memory.
  const char* if_too_large = "use fewer or smaller files, or token files";
  std::int64_t shuffle_buffer = 1;         ///< records that a stream draws from when it is shuffled
  bool always_mask = false;                ///< batches have a mask even where it is true everywhere
  std::optional<std::int64_t> vocab_size;  ///< what ids are below; nothing: that of the training set or the files
  const char* units = "ids";               ///< what a line is made of, for messages
  /// Makes a sample of a line that is not blank. Its failure is reported with file and line. `vocab_size`: what ids
  /// have to be below.
  std::function<runner::core::Result<IdsLine>(const std::string& line, std::int64_t vocab_size)> parse;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  ///< for text of ids; may be null

  /// Lines are texts of this one: its vocabulary, and where it fills and cuts.
  void use(std::shared_ptr<const tokenizer::Tokenizer> its);
};

/// A data set of lines of ids that differ in length, held in memory. Null when an error was reported. Reads the keys
/// `path`, `split`, `vocab_size`, `max_seq_len`, `packing` and `too_long` of the block for the places of errors.
std::shared_ptr<Dataset> make_id_lines(const IdLinesOptions& options, const Inputs& inputs);

}  // namespace components::data
