#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/pretrained/write/export.h"

namespace runner::pretrained {

struct MergeRequest {
  std::string adapter, base;  ///< folders of PEFT and of Transformers; base "": as the adapter's configuration says
  std::string folder;         ///< to write
  std::string dtype;          ///< of the floating weights, as safetensors calls it; "": as the base has them
  std::int64_t shard_bytes_max = 0;
  bool force = false;
  std::vector<std::string> more = {};  ///< folders of further adapters of the same base
};

/// Writes the base model with the adapters added to its weights, as PEFT's merge_and_unload and save_pretrained do.
/// Tokenizer and chat template are those of the first adapter's folder if it has a tokenizer, else of the base. Errors
/// RunError: an adapter is of another model, or one of several changes more than by its products (exit status 2), there
/// is no base, and those of export_model().
Exported merge_adapter(const MergeRequest& request);

}  // namespace runner::pretrained
