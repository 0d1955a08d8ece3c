#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace runner::engine {

/// Which samples of which set `view_data` looks at.
struct DataRequest {
  std::string data = "train";
  std::int64_t first = 0, count = 1;  ///< this many from here on, fewer at the end
  bool shuffled = false;              ///< count in the order of the first epoch, not in the set's
};

/// Where positions of a sample come from.
struct SamplePart {
  std::int64_t begin = 0, length = 0;  ///< positions of the input
  std::string file;                    ///< "": not known
  std::string unit;                    ///< `row`, `line`, `byte`, `token`: what `number` counts; "": not known
  std::int64_t number = 0;             ///< from 1
  bool cut = false;                    ///< the record was longer
};

/// One sample as the model gets it, in a batch of its own.
///
/// N: positions of the input   M: of the target; N but for encoder-decoder models
struct SampleView {
  enum class Unit { kBytes, kTokens, kIds };  ///< kIds: no tokenizer is known, and a token's text is its number

  std::int64_t index = 0;             ///< in the set
  std::vector<std::int64_t> ids;      ///< [N]; empty: the input is no sequence of ids
  std::vector<std::int64_t> targets;  ///< [M]; what each position predicts, kNoTarget: nothing
  std::vector<bool> mask;             ///< [N]; empty: every position is seen
  Unit unit = Unit::kTokens;          ///< what an id is
  std::vector<std::string> tokens;    ///< [N]; the text of each; "": a part of a character that the next ones end
  std::vector<bool> special;          ///< [N]; the text is the name of a special token
  std::string last_target;            ///< text of the last target; "": it has none
  std::vector<SamplePart> parts;
  std::vector<std::pair<std::string, core::Node>> columns;   ///< of a table, as read
  std::vector<std::pair<std::string, std::string>> tensors;  ///< name, and type and shape or value

  static constexpr std::int64_t kNoTarget = -100;
};

struct DataView {
  std::string set, type, description;
  std::int64_t size = 0;  ///< samples of the set, or of an epoch with DataRequest::shuffled
  std::vector<SampleView> samples;
};

}  // namespace runner::engine
