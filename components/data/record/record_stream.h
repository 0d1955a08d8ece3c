#pragma once

#include <memory>

#include "components/data/data.h"
#include "components/data/record/record_options.h"

namespace components::data {

/// A data set of the lines of files that are read as a stream: rows as those of make_record_set(), encoded when they
/// are needed, with memory for the shuffle buffer only. `options` has `max_seq_len` and `vocab_size`, and all of the
/// lines. Its first records are read at once; null when an error was reported.
std::shared_ptr<Dataset> make_record_stream(RecordSetOptions options, const Inputs& inputs);

}  // namespace components::data
