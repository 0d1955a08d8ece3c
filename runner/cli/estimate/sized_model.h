#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/module_sizes.h"

namespace runner::cli {

class WeightHeaders;
class ConfigFolder;

/// A model whose memory is asked for, without its weights.
struct SizedModel {
  std::string title;                      ///< as the command line has it
  std::string model_type, architecture;   ///< the class that is counted; "" where roux does not know the type
  std::optional<core::Node> config = {};  ///< checked; nothing where roux does not know the type
  std::string folder = {};                ///< with its config.json
  std::string head = {};                  ///< of the class: a value of `model.head`
  bool is_bf16 = false;                   ///< its files are in bfloat16
  std::vector<pretrained::TensorShape> tensors = {};  ///< of the files, where roux does not know the type
  std::string told = {};                              ///< what the answer is not, or not exactly
  std::shared_ptr<const ConfigFolder> held = {};      ///< `folder`, where it is a temporary one
};

/// Whether the word names a recipe, and not the configuration of a model.
bool names_recipe(const std::string& word);

/// Of `hf://OWNER/NAME`, a folder of Transformers, a config.json or a file of safetensors. Reads headers of weights at
/// most. Nothing when the session failed.
std::optional<SizedModel> find_sized_model(Session& session, const std::string& word);

}  // namespace runner::cli
