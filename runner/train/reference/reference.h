#pragma once

#include <cstdint>
#include <string>

#include "runner/core/diagnostics.h"

namespace runner::train {

class SignalWatch;
struct Experiment;

struct ReferenceOptions {
  std::string run_dir = {};     ///< of the run; "": nothing is written
  std::string checkpoint = {};  ///< that is loaded next, or has been; "": the model is as it begins
  bool evaluates = false;       ///< the model has its weights already, and nothing is written
  std::string only = {};        ///< prepares one data set; "": all of them
  const SignalWatch* signals = nullptr;
};

/// Gives the experiment's sets of pairs the figures of the reference model, where the loss reads them: those of
/// reference/SET.safetensors in the folder of the run, or of the checkpoint's run, or else computed. The reference is
/// the model of `teacher`, or the model as it begins, without its adapters; another model than the experiment's own is
/// in memory as long as it computes. Of a training set that is a stream the figures are computed step by step, by
/// Experiment::step_reference, and nothing is written; nor is it for a loss that compares outputs. With several
/// processes each computes its share; rank 0 reads and writes.
///
/// Errors  RunError when a run that resumes from a checkpoint lacks a file, or it is damaged or of other pairs: the
///         reference may have changed since. Of one that begins it is computed again. When weights of the reference
///         cannot be read; as resumable when a signal arrives meanwhile: the same command computes what was not
///         written.
/// Source  trl.DPOTrainer.compute_ref_log_probs, precompute_ref_log_probs
void prepare_reference(Experiment& experiment, const ReferenceOptions& options);

/// Prepares what a teacher is asked step by step, before the run that resumes from `checkpoint` is opened. RunError
/// where its weights are not those that the training began with. A collective.
void check_teacher(Experiment& experiment, const std::string& checkpoint);

/// Whether prepare_reference() has something to do.
bool needs_reference(const Experiment& experiment);

struct PlannedReference {
  std::string text;             ///< `the model without its adapters`; "" where the loss reads none
  std::int64_t held_bytes = 0;  ///< of another model that is in memory while training
};

/// What the reference is, for `plan`. Reports a teacher that cannot be read, or does not fit, by headers of files.
/// `experiment` may be on the meta device.
PlannedReference plan_reference(const Experiment& experiment, core::Diagnostics& diagnostics);

}  // namespace runner::train
