#include "runner/artifact/safetensors_writer.h"

#include <cstdint>
#include <filesystem>

#include "runner/artifact/file_writer.h"
#include "runner/artifact/safetensors_layout.h"

namespace runner::artifact {

FileEntry write_safetensors(Io& io, const std::string& path, std::vector<TensorBytes> tensors,
                            const std::vector<std::pair<std::string, std::string>>& metadata,
                            const DraftOptions& options) {
  sort_for_safetensors(tensors);
  const std::string head = safetensors_head(tensors, metadata);
  auto bytes = static_cast<std::int64_t>(head.size());
  for (const TensorBytes& tensor : tensors) bytes += tensor.bytes;
  FileWriter writer(io, path, {bytes, options.direct, options.throttle});
  writer.append(head.data(), static_cast<std::int64_t>(head.size()));
  for (const TensorBytes& tensor : tensors) writer.append(tensor.data, tensor.bytes);
  return writer.finish(std::filesystem::path(path).filename().string());
}

}  // namespace runner::artifact
