#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "components/data/data.h"
#include "components/data/record/record_encoder.h"
#include "components/data/record/sequence_rows.h"
#include "components/tensor/questions.h"
#include "components/tensor/tensor_spec.h"

namespace components::data {

/// The records of a set in memory, as sequences; its rows are not made yet.
struct RecordsRead : SequenceRows {
  std::int64_t id_max = 0, type_max = 0;   ///< of ids that files hold: of all records, whatever the split
  std::int64_t bytes = 0;                  ///< of the files, unpacked
  Account account;                         ///< of the split
  std::vector<FieldCount> fields;          ///< of the records of the split
  std::optional<TensorSpec> label_target;  ///< where labels are numbers of a record
  std::int64_t class_count = 0;            ///< of labels that are classes
  std::shared_ptr<Questions> questions;    ///< of kSpans that are texts
  std::vector<std::string> class_names;    ///< of those; empty where they are numbers
};

/// Reads the records of the split to their end, encoded by all threads: the result does not depend on their number.
/// Nothing when an error was reported. Warns of what is left out, not read or not learnt.
std::optional<RecordsRead> read_records(const RecordEncoder& encoder, const Inputs& inputs);

}  // namespace components::data
