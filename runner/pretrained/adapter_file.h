#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::pretrained {

inline constexpr const char* kAdapterFile = "adapter_model.safetensors";

/// What a tensor of PEFT's file is.
struct AdapterName {
  enum class Part { kA, kB, kMagnitude, kBias };
  Part part = Part::kA;
  std::string module;  ///< of the base model, in Transformers: `model.layers.0.self_attn.q_proj`
};

/// `base_model.model.` + a name of Transformers: what a module that is trained whole is called there.
std::string saved_module_name(const std::string& tensor);

/// Reads `base_model.model.MODULE.lora_A.weight`; nothing for a name that is none of those that LoRA has.
std::optional<AdapterName> parse_adapter_name(std::string_view name);

/// PEFT's name. `adapted`: for a bias, whether the layer has an adapter.
std::string adapter_name(const std::string& module, AdapterName::Part part, bool adapted = true);

/// A of one layer, [r, in], and B, [out, r]; of DoRA the magnitude, [out], else null.
struct LowRankPair {
  std::string module;
  const artifact::TensorBytes* a = nullptr;
  const artifact::TensorBytes* b = nullptr;
  const artifact::TensorBytes* magnitude = nullptr;
};

/// The tensors of an adapter's folder: adapter_model.safetensors, or adapter_model.bin as older versions write.
class AdapterFile {
 public:
  /// `config`: the checked configuration of the folder. Failure (exit status 2), with file and tensor: no such file, a
  /// name that LoRA does not have, shapes that do not fit `r` or each other, an A without its B.
  static core::Result<AdapterFile> open(const std::string& folder, const core::Node& config);

  const std::string& path() const { return path_; }
  const std::vector<LowRankPair>& pairs() const { return pairs_; }  ///< in the order of their modules' names
  /// Trained biases, by Transformers' name: `transformer.h.0.ln_1.bias`.
  const std::map<std::string, const artifact::TensorBytes*>& biases() const { return biases_; }
  /// Tensors of `modules_to_save`, by Transformers' name: `lm_head.weight`.
  const std::map<std::string, const artifact::TensorBytes*>& modules() const { return modules_; }

 private:
  core::Result<void> take(const core::Node& config);

  std::string path_;
  std::unique_ptr<artifact::SafetensorsReader> reader_;
  std::vector<LowRankPair> pairs_;
  std::map<std::string, const artifact::TensorBytes*> biases_, modules_;
};

/// The first error as a Failure (exit status 2) that begins with its place.
core::Failure first_error(const core::Diagnostics& diagnostics);

/// An adapter's folder, read and checked.
struct OpenedAdapter {
  core::Node config;
  AdapterFile file;
};

/// Whether the file holds tensors of all that its configuration adapts of a model, of whose linear layers these are
/// PEFT's names. Failure (exit status 2) names the first layer that the file lacks: PEFT would leave it as it is.
core::Result<void> check_holds_all(const OpenedAdapter& adapter, const std::vector<std::string>& linear_modules);

/// Failure (exit status 2) as read_adapter_config() and AdapterFile::open() report, with file and line.
core::Result<OpenedAdapter> open_adapter(const std::string& folder);

}  // namespace runner::pretrained
