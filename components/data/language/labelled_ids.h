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

}  // namespace components::data
