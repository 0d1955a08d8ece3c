#pragma once

#include <cstdint>
#include <optional>

#include "components/data/record/sequence_rows.h"

namespace components::data {

/// Makes rows of labelled records of `rows`, each a sequence with a label, or a pair, which is split: its chosen
/// sequence is a desirable record, its rejected one another. The order is that of the records, behind them that of the
/// rejected ones, and each gets as its second sequence its prompt with the completion of the record before it; the
/// first that of the last. A second sequence longer than `length_max` is cut at its end, or its beginning.
///
/// Source  trl.KTOTrainer, which takes the completion before within a micro-batch
void add_other_completions(SequenceRows& rows, std::optional<std::int64_t> length_max, bool cut_end);

}  // namespace components::data
