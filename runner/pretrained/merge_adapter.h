#pragma once

#include <cstdint>
#include <string>

#include "runner/pretrained/export.h"

namespace runner::pretrained {

struct MergeRequest {
  std::string adapter, base;  ///< folders of PEFT and of Transformers; base "": as the adapter's configuration says
  std::string folder;         ///< to write
  std::string dtype;          ///< of the floating weights, as safetensors calls it; "": as the base has them
  std::int64_t shard_bytes_max = 0;
  bool force = false;
};

/// Writes the base model with the adapter added to its weights, as PEFT's merge_and_unload and save_pretrained do.
/// Tokenizer and chat template are those of the adapter's folder if it has a tokenizer, else of the base. Errors
/// RunError: the adapter is of another model (exit status 2), there is no base, and those of export_model().
Exported merge_adapter(const MergeRequest& request);

}  // namespace runner::pretrained
