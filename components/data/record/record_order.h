#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "components/data/record/record_source.h"
#include "components/data/text_files.h"

namespace components::data {

/// Where a record lies in a set of files.
struct RecordPlace {
  std::size_t file = 0;        ///< of the set
  std::int64_t number = 0;     ///< of its line or row, from 1
  std::int64_t offset = 0;     ///< of its line in the text, unpacked; of a row: the rows in front of it
  std::uint32_t checksum = 0;  ///< of its text
};

struct RecordText {
  RecordPlace place;
  std::string text;
  bool is_text = false;                                           ///< not a mapping of JSON: RecordSource::is_text()
  std::shared_ptr<const std::vector<std::string>> left_out = {};  ///< RecordSource::left_out()
};

/// Of all files together. RunError as RecordSource.
RecordTotals count_records(const std::vector<TextFile>& files, const RecordFormat& format);

/// Reads the lines of files that are not blank, pass after pass: files in an order that each pass shuffles, lines in
/// order, and records drawn from a buffer that is refilled from them, until it is empty at the end of a pass. So a pass
/// has each record once. A pure function of files, options and seed.
///
/// Source  `IterableDataset.shuffle(seed, buffer_size)` of Hugging Face's datasets; `wds.shuffle` of WebDataset
class RecordOrder {
 public:
  struct Options {
    std::vector<TextFile> files;
    std::string set;          ///< `data.train`, for messages
    bool shuffle = false;     ///< false: files and lines in their order, without a buffer
    std::int64_t buffer = 1;  ///< records
    std::uint64_t seed = 0;
    std::int64_t bytes_max = 0;  ///< of the texts in the buffer
    RecordFormat format;
  };
  /// Where a pass is.
  struct State {
    std::int64_t pass = 0;
    std::size_t file = 0;      ///< place in the order of the pass
    RecordSource::Place line;  ///< the next one to be read
    std::uint64_t draws = 0;   ///< random numbers of the pass so far
    std::vector<RecordPlace> buffer;
  };

  explicit RecordOrder(Options options);

  /// The next record; nothing at the end of a pass, behind which the next one begins. RunError names file and line of
  /// what cannot be read, and where the buffer has more text than `bytes_max`.
  std::optional<RecordText> next();

  void limit_buffer(std::int64_t bytes) { options_.bytes_max = bytes; }
  State state() const;
  /// RunError when a record of the buffer is not what it was.
  void restore(const State& state);
  /// Reads records again, in this order; RunError when one is not what it was.
  std::vector<RecordText> read(std::span<const RecordPlace> places) const;

  const std::vector<TextFile>& files() const { return options_.files; }

 private:
  void start_pass(std::int64_t pass);
  std::optional<RecordText> read_line();
  void fill();
  std::uint64_t random(std::uint64_t stream, std::uint64_t number) const;

  Options options_;
  std::int64_t pass_ = 0;
  std::vector<std::size_t> order_;  // of the files in this pass
  std::size_t file_ = 0;            // in order_
  RecordSource::Place line_;
  std::unique_ptr<RecordSource> source_;  // null: opened at line_ when it is needed
  std::uint64_t draws_ = 0;
  std::vector<RecordText> buffer_;
  std::int64_t bytes_ = 0;  // of the texts in it
};

}  // namespace components::data
