#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

struct ExportGguf {
  std::string source;  ///< a checkpoint, as artifact::find_checkpoint() takes it, or a folder of Transformers
  std::string file, type;
  std::vector<std::string> adapters;
  bool force = false, merge = false;
};

/// `roux export SOURCE FILE.gguf`. Errors are the session's.
void export_gguf(const ExportGguf& request, Session& session);

}  // namespace runner::cli
