#include "components/data/record/record_counts.h"

#include "components/data/text_utils.h"

namespace components::data {

runner::core::Failure no_usable_record(const std::string& set, std::int64_t files, const RecordCounts& counts,
                                       const std::string& first) {
  const std::string in_files = counted_large(files, "file", "files");
  if (counts.records == 0) {
    return {set + " has no record in " + in_files + ": all lines are blank", "name files with records in path"};
  }
  std::string message =
      set + " has no usable record: " + counted_large(counts.records, "record", "records") + " in " + in_files;
  if (counts.dropped > 0) message += ", " + with_commas(counts.dropped) + " too long";
  if (counts.skipped > 0) {
    message += (counts.dropped > 0 ? " and " : ", ") + with_commas(counts.skipped) + " not valid";
  }
  if (!first.empty()) message += ", such as " + first;
  return {message, counts.dropped > 0 ? "raise max_seq_len, or use too_long: cut"
                                      : "remove on_bad_record: skip to see what is wrong with each"};
}

}  // namespace components::data
