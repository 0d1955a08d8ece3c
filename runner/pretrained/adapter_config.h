#pragma once

#include <optional>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::pretrained {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";

/// That file of a folder that PEFT wrote; "" when `path` is no folder or holds none.
std::string adapter_config_of_folder(const std::string& path);

/// Reads and checks the configuration of an adapter (LoRA, as PEFT 0.21 writes it) in a folder. Nothing when
/// `diagnostics` got errors, each at its place in the file: no such file, no JSON, another method than LoRA, fields
/// that are unknown, of the wrong type or out of range, or that ask for what roux does not compute.
std::optional<core::Node> read_adapter_config(const std::string& folder, core::Diagnostics& diagnostics);

/// The same of one that has been parsed. The result holds every field that roux reads, with defaults filled in;
/// checking it again changes nothing.
std::optional<core::Node> check_adapter_config(const core::Node& config, core::Diagnostics& diagnostics);

/// What an adapter's result is multiplied by, from `r`, `lora_alpha` and `use_rslora` of a checked configuration or of
/// a recipe's block.
double adapter_scale(const core::Node& config);

/// adapter_config.json as PEFT writes it, of the fields that roux reads; other fields have their defaults.
std::string adapter_config_text(const core::Node& config);

/// The folder of the base model: `base_model_name_or_path`, as it is or from the adapter's folder. Failure (exit
/// status 2) when there is no such folder with a config.json.
core::Result<std::string> base_of_adapter(const std::string& folder, const core::Node& config);

}  // namespace runner::pretrained
