#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace runner::engine {

/// Which samples of which set `view_data` and `data_stats` look at.
struct DataRequest {
  std::string data = "train";
  std::int64_t first = 0, count = 1;  ///< view_data: this many from here on, fewer at the end
  bool shuffled = false;              ///< view_data: count in the order of the first epoch, not in the set's
  std::int64_t most = 0;              ///< data_stats: only this many samples of a stream; 0: all of a pass
  /// data_stats: called now and then with the samples read and those to be read, 0 where that is not known; may be
  /// empty.
  std::function<void(std::int64_t done, std::int64_t all)> progress = nullptr;
};

/// Where positions of a sample come from.
struct SamplePart {
  std::int64_t begin = 0, length = 0;  ///< positions of the input
  std::string file{};                  ///< "": not known
  std::string unit{};                  ///< `row`, `line`, `byte`, `token`: what `number` counts; "": not known
  std::int64_t number = 0;             ///< from 1
  bool cut = false;                    ///< the record was longer
};

/// One sample as the model gets it, in a batch of its own.
///
/// N: positions of the input   M: of the target; N but for encoder-decoder models
struct SampleView {
  enum class Unit { kBytes, kTokens, kIds };  ///< kIds: no tokenizer is known, and a token's text is its number

  std::int64_t index = 0;             ///< in the set
  std::vector<std::int64_t> ids;      ///< [N]; empty when the input is not a sequence of ids
  std::vector<std::int64_t> targets;  ///< [M]; what each position predicts, kNoTarget: nothing
  std::vector<bool> mask;             ///< [N]; empty: every position is seen
  Unit unit = Unit::kTokens;          ///< what an id is
  std::vector<std::string> tokens;    ///< [N]; the text of each; "": a part of a character that the next ones end
  std::vector<bool> special;          ///< [N]; the text is the name of a special token
  std::string last_target;            ///< text of the last target; "": it has none
  bool in_place = false;              ///< what is told at a position is what stood there
  bool is_written = false;            ///< what is told is a text of its own, which a decoder writes
  std::vector<std::string> answers;   ///< in place [N], or written [M]: the text of each target; "": nothing
  std::string label;                  ///< of a text that a head tells, its class, classes or values
  std::vector<std::string> tags;      ///< [N]; of each token its class; "": it has none. Empty without tags
  std::vector<SamplePart> parts;
  std::vector<std::pair<std::string, core::Node>> columns;   ///< of a table, as read
  std::vector<std::pair<std::string, std::string>> tensors;  ///< name, and type and shape or value

  static constexpr std::int64_t kNoTarget = -100;
};

/// A field of the records of a set: `context`, `messages[].thought`.
struct FieldFigures {
  std::string name;
  std::int64_t records = 0, read = 0;  ///< that have something in it, and of them those in which it is read
};

struct DataView {
  std::string set, type, description;
  std::int64_t size = 0;  ///< samples of the set, or of an epoch with DataRequest::shuffled; 0: a stream
  std::vector<SampleView> samples;
  std::vector<FieldFigures> fields;  ///< of all records, or of a stream of those that were shown; empty: they have none
};

/// Padding of the batches of an epoch.
struct PaddingFigures {
  std::int64_t batches = 0;
  std::int64_t positions = 0, padding = 0;  ///< of the inputs of all batches; of them without a token
};

/// Of a sample by its length.
struct LengthFigures {
  std::int64_t least = 0, median = 0, p90 = 0, p99 = 0, most = 0;
  double mean = 0;
  std::int64_t bin_width = 1;      ///< of `bins`
  std::int64_t bins_from = 0;      ///< where the first begins
  std::vector<std::int64_t> bins;  ///< samples of each length
};

struct DataStats {
  std::string set, type, description;
  std::int64_t samples = 0, records = 0;
  bool is_part = false;                                       ///< DataRequest::most ended it: figures of what was read
  std::int64_t cut = 0, dropped = 0, skipped = 0;             ///< records
  std::string reasons;                                        ///< why records were skipped
  std::vector<std::pair<std::string, std::int64_t>> classes;  ///< name, and how many samples or tokens are of it
  // Of sequences of ids; 0 elsewhere.
  std::int64_t tokens = 0, target_tokens = 0;
  std::int64_t vocabulary = 0, vocabulary_used = 0;  ///< ids that there may be, and that are in the input
  LengthFigures lengths;
  std::optional<std::int64_t> longest;     ///< index of the longest sample; nothing for a stream
  std::optional<SamplePart> longest_part;  ///< its longest record
  std::int64_t micro_batch_size = 0;
  PaddingFigures padding;                         ///< as the recipe's loader makes batches
  std::optional<PaddingFigures> grouped, packed;  ///< with loader.group_by_length, and with packing: where not used
  std::int64_t row_length = 0;                    ///< of `packed`
  std::vector<std::string> columns;               ///< of a table
  std::vector<std::pair<std::string, std::string>> tensors;  ///< of other sets: name, and type and shape
  std::vector<FieldFigures> fields;                          ///< of the records; empty: they have none
};

}  // namespace runner::engine
