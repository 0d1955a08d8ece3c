#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::pretrained {

struct ExportRequest {
  std::string tensors;       ///< file of the model's tensors, or index of shards
  core::Node resolved = {};  ///< recipe of the run they are from
  std::string folder;        ///< to write
  std::int64_t shard_bytes_max = 0;
  bool force = false;  ///< write into a folder that exists: files of the same names are replaced
};

struct Exported {
  std::string model_type;
  std::int64_t tensors = 0, bytes = 0;
  std::vector<std::string> files;   ///< their names, sorted
  std::vector<std::string> copied;  ///< of those, taken over from the folder of `init_from`
  std::string source;               ///< that folder; "" when there is none
};

/// Writes a trained model as Transformers' save_pretrained does: weights under its names, `config.json`,
/// `generation_config.json` and, unchanged, the tokenizer's files of the folder that the recipe began from. A new
/// folder appears whole or not at all. Errors  RunError: Transformers has no such model (exit status 2), the folder
/// exists, the disk.
Exported export_model(const ExportRequest& request);

}  // namespace runner::pretrained
