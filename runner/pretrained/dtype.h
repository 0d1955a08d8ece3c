#pragma once

#include <string>

namespace runner::pretrained {

/// `float32`, as configurations call safetensors' `F32`; float32 for a type without such a name.
std::string dtype_name(const std::string& word);

/// `F32` of `float32`; "" for another word.
std::string dtype_word(const std::string& name);

}  // namespace runner::pretrained
