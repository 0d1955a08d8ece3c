#pragma once

#include <cstdint>
#include <string_view>

#include "components/data/data.h"
#include "components/data/record/sequence.h"
#include "runner/core/result.h"

namespace components::data {

/// A line of ids for a head that tells labels, or ids that were masked: its `labels` are the label of the text, or
/// those of its ids, at their own positions. `needed`: false where nothing is learnt, and a line may lack them.
runner::core::Result<Sequence> labelled_ids(std::string_view line, std::int64_t vocab_size, LabelKind kind,
                                            bool needed);

/// A line of ids of one or several texts: `input_ids` is a list of ids, or a list of such lists, one for each text. Of
/// kScores `labels` is the score of two, of kChoices the number of the right one, and of kSpans, which has one, the
/// places of the first and last id of an answer. `needed`: false where nothing is learnt.
runner::core::Result<Sequence> ids_of_texts(std::string_view line, std::int64_t vocab_size, LabelKind kind,
                                            bool needed);

}  // namespace components::data
