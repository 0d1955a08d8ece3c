#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"

namespace runner::artifact {

/// Makes the content of a tensor of that name.
using MakeContent = std::function<std::vector<char>(const std::string& name)>;

/// Writes a new safetensors file from front to back and fsyncs it; tensors in the order of the safetensors library,
/// data aligned to 64 bytes. The entry's name is that of the file. `make`: asked for those without data, one after the
/// other. RunError as Io says.
FileEntry write_safetensors(Io& io, const std::string& path, std::vector<TensorBytes> tensors,
                            const std::vector<std::pair<std::string, std::string>>& metadata,
                            const DraftOptions& options, const MakeContent& make = nullptr);

}  // namespace runner::artifact
