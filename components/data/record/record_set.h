#pragma once

#include <memory>

#include "components/data/data.h"
#include "components/data/record/record_options.h"

namespace components::data {

/// A data set of records in memory, whose sequences differ in length: the stream of its records, read to its end. Null
/// when an error was reported. Reads the keys `path`, `split`, `vocab_size`, `max_seq_len`, `packing` and `too_long` of
/// the block for the places of errors.
std::shared_ptr<Dataset> make_record_set(const RecordSetOptions& options, const Inputs& inputs);

}  // namespace components::data
