#pragma once

#include "runner/words/reader.h"

namespace runner::cli {

/// The rule `data` of schemas/words/axolotl.json: `datasets`, `test_datasets`, `pretraining_dataset` and what is said
/// of all of them become `data.train` and `data.val`.
void take_axolotl_data(words::Reader& reader);

}  // namespace runner::cli
