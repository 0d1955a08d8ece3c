#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/data/record/record_counts.h"
#include "components/data/record/record_order.h"
#include "components/data/stream.h"
#include "components/data/text_files.h"

namespace components::data {

/// A place in a stream of rows of records.
struct StreamMark final : Stream::Mark {
  StreamMark(std::int64_t sample, std::int64_t pass_of_it, std::int64_t used, RecordOrder::State state,
             std::vector<std::vector<RecordPlace>> rows, std::shared_ptr<const std::vector<TextFile>> of_files);

  std::int64_t position = 0, pass = 0;
  std::int64_t samples_in_pass = 0;
  RecordCounts counts;  ///< of all passes
  RecordOrder::State order;
  std::vector<std::vector<RecordPlace>> open_rows;     ///< of packing
  std::vector<std::vector<RecordPlace>> ready_rows;    ///< that were made and not yet returned, all of one pass
  std::int64_t ready_pass = 0;                         ///< which is that
  std::shared_ptr<const std::vector<TextFile>> files;  ///< of the set

  std::int64_t sample() const override { return position; }
  runner::core::Node to_node() const override;
  /// Of to_node(). RunError when it was saved of other files than `files`, or their sizes differ.
  static StreamMark of(const runner::core::Node& node, std::shared_ptr<const std::vector<TextFile>> files,
                       const std::string& set);
};

}  // namespace components::data
