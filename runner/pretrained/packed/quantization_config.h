#pragma once

#include <optional>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::pretrained {

inline constexpr const char* kQuantizationConfig = "quantization_config";  ///< a field of config.json

/// The `quantization` of a recipe that says what such a field does, with its locations. Reports another way than
/// bitsandbytes', which roux does not read, and values that are none.
std::optional<core::Node> quantization_of(const core::Node& field, core::Diagnostics& diagnostics);

/// The field for a `quantization` of a recipe that has all keys: bitsandbytes' with what it has beside.
core::Node quantization_config_of(const core::Node& quantization);

}  // namespace runner::pretrained
