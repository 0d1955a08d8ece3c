#pragma once

#include <memory>
#include <string>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::artifact {

/// Its metadata's key for where in the file the state dict was, when it is not the whole.
inline constexpr const char* kStateDictKey = "state_dict_key";

/// A state dict that torch.save wrote (parse_torch_file()), memory-mapped, as safetensors' readers give it: rows whole
/// and in order. Of a tensor that lies otherwise in the file, a transposed one for example, a copy is made.
/// Failure: of parse_torch_file(); copies that would take more than the file.
core::Result<std::unique_ptr<SafetensorsReader>> open_torch_file(const std::string& path);

}  // namespace runner::artifact
