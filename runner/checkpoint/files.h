#pragma once

namespace runner::checkpoint {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kModelIndexFile = "model.safetensors.index.json";  ///< when it is in several files
inline constexpr const char* kOptimizerSection = "optimizer";
inline constexpr const char* kRandomSection = "random_states_0";  ///< of rank 0, as `<name>.safetensors`
inline constexpr const char* kCpuGenerator = "torch.cpu";

}  // namespace runner::checkpoint
