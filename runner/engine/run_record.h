#pragma once

#include <cstdint>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/engine/engine.h"
#include "runner/train/experiment/experiment.h"

namespace runner::distributed {
class ProcessGroup;
}
namespace runner::engine {

/// A checkpoint and the run that it belongs to.
struct FoundCheckpoint {
  std::string path = {};
  std::string run_dir = {}, run_id = {};     ///< "": no run of it is known
  std::string recipe = {}, provenance = {};  ///< recorded files of its branch; "": there are none
  std::int64_t step = 0;
  core::Node model_sizes = core::Node::mapping();  ///< ManifestFields::model_sizes
};

/// The checkpoint that the request names, verified. RunError when there is none. With several processes rank 0 finds it
/// for all, as `last` may be another one a moment later; `ranks` null: this process works alone.
FoundCheckpoint find_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                distributed::ProcessGroup* ranks);

/// Whether the recipe is the run's own in what the weights and their inputs depend on: the model, the loss, and how
/// the data become numbers. Each difference is an error with both values and both locations.
bool fits_recorded_recipe(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint, const EvalRequest& request,
                          core::Diagnostics& diagnostics);

/// `recipe` with the sizes that the run's model took from its data, where the recipe leaves them to the data: no data
/// set is needed to build the model again.
resolve::Recipe with_recorded_sizes(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint);

/// Whether the table of the training set is the one that the run was trained on, wherever it lies: its statistics and
/// classes are computed again.
bool fits_recorded_table(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint,
                         core::Diagnostics& diagnostics);

/// Whether `split_by: files` chooses the files that the run was trained on: what it holds out would have been trained
/// on otherwise. Warns of files that changed.
bool fits_recorded_files(const train::Experiment& experiment, const FoundCheckpoint& checkpoint,
                         core::Diagnostics& diagnostics);

/// Says where the run was started, if that is another folder and the recipe has paths that are relative to it.
void note_folder(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint, core::Diagnostics& diagnostics);

}  // namespace runner::engine
