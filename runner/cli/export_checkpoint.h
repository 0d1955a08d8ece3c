#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runner/cli/session.h"
#include "runner/pretrained/write/export.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::cli {

struct ExportCheckpoint {
  std::string name;  ///< as artifact::find_checkpoint() takes it
  std::string runs_dir, folder;
  std::int64_t shard_bytes_max = 0;
  bool force = false, merge = false;  ///< merge: of a run with adapters, the model with them
  std::string adapter = {};           ///< folder of PEFT to merge into the model; "": none
  std::string dtype = {};             ///< of safetensors, which the weights of a model become; "" keeps their own
  std::optional<pretrained::PackForm> quantize = {};  ///< as pretrained::ExportRequest has it
  /// Writes a model in another form than a folder.
  std::function<void(const pretrained::ModelContent& model)> write = nullptr;
};

/// `roux export`. Newer checkpoints that are damaged and so skipped are named on standard error.
/// Errors  RunError: no such checkpoint, a damaged one, and those of pretrained::export_model().
pretrained::Exported export_checkpoint(const ExportCheckpoint& request);

/// `a llama`, or `an adapter of a llama`.
std::string what(const pretrained::Exported& done);

/// What `roux export` prints of a folder that it wrote.
void print_exported(const pretrained::Exported& done, const std::string& folder);

/// The value of --max-shard-size; nothing, with an error, when it is no size.
std::optional<std::int64_t> shard_bytes(Session& session, const std::string& text);

/// Warns when that folder of a run that begins holds what export_trained() may not replace.
void warn_of_export_folder(const std::string& run_dir);

/// `checkpoint.export`: writes the folder `export` of a run that is trained, and logs it. The run may not have ended.
/// Errors  RunError, with the command that tries again in its hint.
void export_trained(const resolve::Recipe& recipe, const std::string& run_dir);

}  // namespace runner::cli
