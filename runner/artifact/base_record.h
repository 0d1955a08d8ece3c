#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::artifact {

/// What trainer.json of a checkpoint of adapters says of the weights that it does not hold.
struct BaseRecord {
  /// One of the model, of these in the source, joined in their order.
  struct Tensor {
    std::string name;
    std::vector<std::string> from;
    bool transposed = false;
    std::string dtype = {};                ///< in the source; "": not known
    std::vector<std::string> beside = {};  ///< what else the source has of a weight in 4 or 8 bits
    bool quantized = false;                ///< kept in fewer bits by the recipe's `quantization`
  };

  std::string source;           ///< file of tensors or index of shards
  std::string checksum;         ///< checksum_of() of these tensors there
  std::vector<Tensor> tensors;  ///< sorted by name
};

/// Of names, types, shapes and numbers, of what lies beside them as well; reads them all. "" when one is not there.
std::string checksum_of(const SafetensorsReader& source, const std::vector<BaseRecord::Tensor>& tensors);

core::Node to_node(const BaseRecord& record);
/// The record in a trainer.json; nothing where it has none. RunError names `path` when it cannot be read.
std::optional<BaseRecord> base_of_trainer(const core::Node& trainer, const std::string& path);
/// The same for the checkpoint in a folder; nothing for a folder that is none.
std::optional<BaseRecord> base_of_checkpoint(const std::string& folder);

/// The base as it was, in the first of these places that is there and has not changed, as a file of tensors or an index
/// of shards: `elsewhere`, as `init_from` names it, unless that is "", and where the record says.
/// Errors  RunError (exit status 2): it is not there, or has changed.
std::string find_base(const BaseRecord& record, const std::string& elsewhere);

}  // namespace runner::artifact
