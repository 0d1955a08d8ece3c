#pragma once

#include "runner/cli/group/import/trainer_method.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// LLaMA-Factory's `dataset` and `eval_dataset`, names in dataset_info.json of its folder, as a words::Reader::Rule.
void take_factory_data(words::Reader& reader, const TrainerMethod& method);

}  // namespace runner::cli
