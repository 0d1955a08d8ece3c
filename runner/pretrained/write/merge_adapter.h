#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/pretrained/packed/pack.h"
#include "runner/pretrained/write/export.h"

namespace runner::pretrained {

struct MergeRequest {
  std::string adapter, base;  ///< folders of PEFT and of Transformers; base "": as the adapter's configuration says
  std::string folder;         ///< to write
  /// Of the floating weights, as safetensors calls it; "": as the base has them, or BF16 where that has or had some in
  /// fewer bits.
  std::string dtype;
  std::int64_t shard_bytes_max = 0;
  bool force = false;
  std::vector<std::string> more = {};     ///< folders of further adapters of the same base
  std::optional<PackForm> quantize = {};  ///< the weights of the merged model's linear layers in fewer bits
  /// How a base in 16 or 32 bits was kept when the adapter was trained, as the default `quantization` of that form.
  std::optional<PackForm> base_form = {};
};

/// Writes the base model with the adapters added to its weights, as PEFT's merge_and_unload and save_pretrained do; of
/// a base in 4 or 8 bits, to the numbers that its weights stand for. Tokenizer and chat template are those of the first
/// adapter's folder if it has a tokenizer, else of the base. Errors RunError: an adapter is of another model, or one of
/// several changes more than by its products (exit status 2), there is no base, and those of export_model().
Exported merge_adapter(const MergeRequest& request);

}  // namespace runner::pretrained
