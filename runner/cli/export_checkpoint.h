#pragma once

#include <cstdint>
#include <string>

#include "runner/cli/session.h"
#include "runner/pretrained/export.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::cli {

struct ExportCheckpoint {
  std::string name;  ///< as artifact::find_checkpoint() takes it
  std::string runs_dir, folder;
  std::int64_t shard_bytes_max = 0;
  bool force = false;
};

/// `roux export`. Newer checkpoints that are damaged and so skipped are named on standard error.
/// Errors  RunError: no such checkpoint, a damaged one, and those of pretrained::export_model().
pretrained::Exported export_checkpoint(const ExportCheckpoint& request);

/// `checkpoint.export`: writes the folder `export` of a run that is trained, and logs it. The run may not have ended.
/// Errors  RunError, with the command that tries again in its hint.
void export_trained(const resolve::Recipe& recipe, const std::string& run_dir);

}  // namespace runner::cli
