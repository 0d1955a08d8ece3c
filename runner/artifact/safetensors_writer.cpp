#include "runner/artifact/safetensors_writer.h"

#include <cstdint>
#include <filesystem>

#include "runner/artifact/file_writer.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/core/error.h"

namespace runner::artifact {

FileEntry write_safetensors(Io& io, const std::string& path, std::vector<TensorBytes> tensors,
                            const std::vector<std::pair<std::string, std::string>>& metadata,
                            const DraftOptions& options, const MakeContent& make) {
  sort_for_safetensors(tensors);
  const std::string head = safetensors_head(tensors, metadata);
  auto bytes = static_cast<std::int64_t>(head.size());
  for (const TensorBytes& tensor : tensors) bytes += tensor.bytes;
  FileWriter writer(io, path, {bytes, options.direct, options.throttle});
  writer.append(head.data(), static_cast<std::int64_t>(head.size()));
  for (const TensorBytes& tensor : tensors) {
    if (tensor.data == nullptr && tensor.pieces.empty() && tensor.bytes > 0) {
      RUNNER_ASSERT(make, "a tensor has its content or is made");
      const std::vector<char> content = make(tensor.name);
      RUNNER_ASSERT(static_cast<std::int64_t>(content.size()) == tensor.bytes, "a tensor is made as large as it says");
      writer.append(content.data(), tensor.bytes);
      continue;
    }
    for (const BytesPiece& piece : pieces_of(tensor)) writer.append(piece.data, piece.bytes);
  }
  return writer.finish(std::filesystem::path(path).filename().string());
}

}  // namespace runner::artifact
