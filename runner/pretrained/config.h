#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::pretrained {

inline constexpr const char* kConfigFile = "config.json";

/// The file of that configuration in a folder of Transformers; "" when `path` is no folder or holds none.
std::string config_of_folder(const std::string& path);

/// Reads and checks a configuration of Transformers (config.json), version 4 or 5. Nothing when `diagnostics` got
/// errors: no such file, no JSON, an unknown model type, fields that are unknown, missing, of the wrong type or out of
/// range, or that ask for what roux does not compute. Each error is at its place in the file. A `quantization_config`
/// (packed/quantization_config.h) stays as it is: it says of the weights what a model does not.
std::optional<core::Node> read_config(const std::string& path, core::Diagnostics& diagnostics);

/// How such a file says that the weights beside it are kept in fewer bits, as the `quantization` of a recipe; nothing
/// where it does not, or in a way that is reported.
std::optional<core::Node> read_quantization(const std::string& path, core::Diagnostics& diagnostics);

/// The same as read_config() of one that is written in a recipe. The result holds every field that roux reads, as
/// version 5 names them, with defaults filled in, and what is given of those without effect; checking it again changes
/// nothing.
std::optional<core::Node> check_config(const core::Node& config, core::Diagnostics& diagnostics);

}  // namespace runner::pretrained
