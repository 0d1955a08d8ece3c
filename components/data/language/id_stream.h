#pragma once

#include <memory>

#include "components/data/data.h"
#include "components/data/language/id_lines.h"

namespace components::data {

/// A data set of the lines of files that are read as a stream: rows as those of make_id_lines(), encoded when they are
/// needed, with memory for the shuffle buffer only. `options` has `max_seq_len` and `vocab_size`, and all of the lines.
/// Its first records are read at once; null when an error was reported.
std::shared_ptr<Dataset> make_id_stream(IdLinesOptions options, const Inputs& inputs);

}  // namespace components::data
