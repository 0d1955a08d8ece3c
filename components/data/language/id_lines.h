#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/data/language/ids_line.h"
#include "components/data/text_files.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

enum class LongLine { kCut, kDrop, kError };

struct IdLinesOptions {
  std::vector<TextFile> files;
  PercentRange share;                       ///< of the lines of all files
  std::optional<std::int64_t> max_seq_len;  ///< in ids
  LongLine too_long = LongLine::kCut;
  bool always_mask = false;                ///< batches have a mask even where it is true everywhere
  std::optional<std::int64_t> vocab_size;  ///< what ids are below; nothing: that of the training set or the files
  const char* units = "ids";               ///< what a line is made of, for messages
  /// Makes a sample of a line that is not blank. Its failure is reported with file and line. `vocab_size`: what ids
  /// have to be below.
  std::function<runner::core::Result<IdsLine>(const std::string& line, std::int64_t vocab_size)> parse;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  ///< for text of ids; may be null
};

/// A data set of lines of ids that differ in length, held in memory. Null when an error was reported. Reads the keys
/// `path`, `split`, `vocab_size`, `max_seq_len` and `too_long` of the block for the places of errors.
std::shared_ptr<Dataset> make_id_lines(const IdLinesOptions& options, const Inputs& inputs);

}  // namespace components::data
