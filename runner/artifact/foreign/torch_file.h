#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace runner::artifact {

/// One tensor of a PyTorch file.
struct TorchTensor {
  std::string name;
  std::string dtype;                         ///< safetensors' word
  std::vector<std::int64_t> shape, strides;  ///< strides in elements, none negative
  std::int64_t item_bytes = 0;
  std::int64_t begin = 0;  ///< of its first element, in the file; all others are in the file, too
};

struct TorchTensors {
  std::vector<TorchTensor> tensors;  ///< in the file's order, names once
  std::string key;                   ///< of the state dict in the file: `state_dict`; "" when it is the whole
};

/// Whether a path ends as files of torch.save do: .bin, .pt, .pth, .ckpt.
bool is_torch_path(std::string_view path);

/// The tensors of a state dict that torch.save wrote, as a zip archive (since PyTorch 1.6) or as a row of pickles. It
/// is read as data; nothing in it runs. A state dict may lie below `state_dict`, `model`, `model_state_dict` or
/// `module`; what else is in it is left out.
///
/// file    the whole content; only the directory and the pickle are touched
/// path    for messages
/// Errors  RunError that names the file and what is wrong in it: see pickle.h and torch_zip.h; a tensor beyond its
///         storage, a storage that is missing or cut off, no tensors
TorchTensors parse_torch_file(std::string_view file, const std::string& path);

}  // namespace runner::artifact
