#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace runner::artifact {

/// The tensors of each file of a model.
struct ShardPlan {
  struct File {
    std::string name;
    std::vector<std::size_t> tensors;  ///< indices, in the order they were given
  };
  std::vector<File> files;
  std::string index;  ///< text of model.safetensors.index.json; "" when one file holds everything
};

/// Fills one file after the other up to `shard_bytes_max`; a larger tensor gets its own file. A single file is
/// `model.safetensors`, several are `model-00001-of-00003.safetensors` with an index.
///
/// tensors   name and bytes, in the model's order, tied ones once
/// Source    huggingface_hub `split_state_dict_into_shards`, as Accelerate's save_model uses it: golden topic
///           checkpointing, kind save_model
ShardPlan plan_shards(const std::vector<std::pair<std::string, std::int64_t>>& tensors, std::int64_t shard_bytes_max);

}  // namespace runner::artifact
