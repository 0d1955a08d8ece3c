#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/base_record.h"
#include "runner/core/node.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/pack.h"

namespace runner::pretrained {

/// A model as it would be saved by Transformers.
struct ModelContent {
  const std::vector<WrittenTensor>& tensors;
  const core::Node& config;  ///< checked
  const ModelType& type;
  std::string tokenizer;  ///< the folder of its files; "": none
};

struct ExportRequest {
  std::string tensors;                   ///< file of the model's tensors, or index of shards
  core::Node resolved = {};              ///< recipe of the run they are from
  std::vector<std::string> labels = {};  ///< names of the classes that its head tells, where they have names
  std::string folder;                    ///< to write
  std::int64_t shard_bytes_max = 0;
  bool force = false;        ///< replace a folder that roux wrote
  bool merge = false;        ///< of a run with adapters: the model with them, not the adapters alone
  std::string adapter = {};  ///< folder of PEFT to merge into the model; "": none
  std::string dtype = {};    ///< of safetensors, which the floating tensors of a model become; "" keeps their own
  std::optional<PackForm> quantize = {};  ///< of a whole model: the weights of its linear layers in fewer bits
  /// Of adapters without their model. With `merge` its source has to be there.
  std::optional<artifact::BaseRecord> base = {};
  /// Writes a model in another form than a folder, which is then not written.
  std::function<void(const ModelContent& model)> write = nullptr;
};

struct Exported {
  std::string model_type;
  bool is_adapter = false;  ///< adapters for such a model, not the model
  std::int64_t tensors = 0, bytes = 0;
  std::vector<std::string> files;   ///< their names, sorted
  std::vector<std::string> copied;  ///< of those, taken over from the folders of tokenizer and `init_from`
  std::string source;               ///< the folder of `init_from`; "" when there is none
  /// Of weights that were packed: |packed - weights| / |weights|.
  std::optional<double> quantization_error = {};
  std::string base;  ///< of adapters: the folder of the model that they were trained for; "": none
};

/// Writes a trained model as Transformers' save_pretrained does: weights under its names, `config.json`,
/// `generation_config.json` and, unchanged, the tokenizer's files: of the recipe's own, else of the folder that it
/// began from. Of a run with adapters these, as PEFT's save_pretrained does, unless they are merged, where the run's
/// `quantization` kept weights in fewer bits to what these stand for, in BF16. A new folder
/// appears whole or not at all. Errors  RunError: Transformers has no such model (exit status 2), an adapter of another
/// one, the folder exists, the disk.
Exported export_model(const ExportRequest& request);

}  // namespace runner::pretrained
