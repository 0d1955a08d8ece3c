#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::artifact {

/// Bytes of one element of a safetensors type; 0 for an unknown name.
std::int64_t safetensors_item_bytes(std::string_view dtype);

/// Puts the tensors into the order of the safetensors library: by type, widest first, then by name.
void sort_for_safetensors(std::vector<TensorBytes>& tensors);

/// The header before the data: 8 bytes of length, then JSON. The JSON is padded with spaces so that the data starts at
/// a multiple of 64 bytes. Between tensors there is no padding: the format wants the data without holes.
std::string safetensors_head(const std::vector<TensorBytes>& sorted,
                             const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace runner::artifact
