#pragma once

#include "components/data/data.h"
#include "generated/data/jsonl.h"

namespace components::data::jsonl {

/// False, with errors, where the set has keys that say something else than labelled records do: that their completions
/// are what is learnt, with their ends, and that each is compared with another one of the set.
bool fits_labels(const Config& config, const Inputs& inputs);

/// False, with errors, where the set has keys that a model with an encoder does not ask for.
bool fits_source(const Config& config, const Inputs& inputs);

/// False, with an error, where columns name fields of forms that exclude each other.
bool name_one_form(const Columns& columns, const Inputs& inputs);

}  // namespace components::data::jsonl
