#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runner/core/result.h"
#include "runner/gguf/reader.h"

namespace runner::gguf {

/// Bytes that the weights of a file take as safetensors: blocks become float32, as they stand for.
std::int64_t unpacked_bytes(const File& file);

/// 16 hex digits that tell this file and its content from others without reading it: of its path, size and time of
/// change.
std::string content_key(const std::string& path);

/// Writes a file of llama.cpp as a folder of Transformers: config.json, the weights in the types that they have there
/// (q8_0 and q4_0 in float32), tokenizer.json, its settings and its chat template. The folder appears whole or not at
/// all, and does not exist before. `name`: of the file, for messages. `begins`: called when all is checked, before the
/// first byte is written.
/// Failure (exit status 2): another architecture than roux reads, a value or a tensor that is missing, unknown or of
/// another shape, a tokenizer that roux does not have; the disk.
core::Result<void> unpack(const File& file, const std::string& name, const std::string& folder,
                          const std::function<void()>& begins = nullptr);

}  // namespace runner::gguf
