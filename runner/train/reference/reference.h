#pragma once

#include <string>

namespace runner::train {

class SignalWatch;
struct Experiment;

struct ReferenceOptions {
  std::string run_dir;
  bool resumes = false;  ///< a checkpoint is loaded next: the model is not the reference any more
  const SignalWatch& signals;
};

/// Gives the experiment's sets of pairs the figures of the reference model, where the loss reads them: those of
/// RUN/reference/SET.safetensors, or else computed with the model as it is now, without its adapters, and written
/// there. With several processes each computes its share; rank 0 reads and writes.
///
/// Errors  RunError when a resumed run lacks a file, or it is damaged or of other pairs; as resumable when a signal
///         arrives meanwhile: the same command computes what was not written.
/// Source  trl.DPOTrainer.compute_ref_log_probs, precompute_ref_log_probs
void prepare_reference(const Experiment& experiment, const ReferenceOptions& options);

/// Whether prepare_reference() has something to do.
bool needs_reference(const Experiment& experiment);

}  // namespace runner::train
