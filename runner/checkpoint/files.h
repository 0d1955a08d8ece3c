#pragma once

#include <string>

namespace runner::checkpoint {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kModelIndexFile = "model.safetensors.index.json";  ///< when it is in several files
inline constexpr const char* kOptimizerSection = "optimizer";
inline std::string random_section(std::size_t rank) { return "random_states_" + std::to_string(rank); }

}  // namespace runner::checkpoint
