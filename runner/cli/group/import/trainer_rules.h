#pragma once

#include "runner/cli/group/import/trainer_method.h"
#include "runner/words/reader.h"

// Rules for arguments of Transformers' Trainer, as words::Reader calls them.

namespace runner::cli {

/// A number; null for none, with an error for what is none.
const core::Node* number_of(words::Reader& reader, const char* key);
/// Betas, eps and weight decay, as the optimizer that was chosen has them.
void take_betas(words::Reader& reader);
void take_trainer_optimizer(words::Reader& reader, const TrainerMethod& method);
/// Turns a warmup that is a part of the training into steps, where the schedule is inverse_sqrt; an error at `key`
/// where their number is not known.
void settle_warmup_of_inverse_sqrt(words::Reader& reader, const char* key);
void take_trainer_schedule(words::Reader& reader, const TrainerMethod& method);
void take_trainer_lengths(words::Reader& reader);
void take_trainer_precision(words::Reader& reader, const TrainerMethod& method);
/// When to log, to evaluate and to save.
void take_trainer_intervals(words::Reader& reader, const TrainerMethod& method);
void take_trainer_best(words::Reader& reader);
void take_trainer_trackers(words::Reader& reader, const TrainerMethod& method);
void take_trainer_run_name(words::Reader& reader);

}  // namespace runner::cli
