#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/gguf/format.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_type.h"

namespace runner::gguf {

struct WriteRequest {
  const std::vector<pretrained::WrittenTensor>& tensors;  ///< by Transformers' names, with the prefix of the head
  const core::Node& config;                               ///< checked
  const pretrained::ModelType& model;
  std::string tokenizer;  ///< the folder of its files; "": none, which is refused
  std::string file;       ///< to write
  FileType type;
  bool force = false;  ///< replace a file
};

struct WrittenFile {
  std::int64_t tensors = 0, bytes = 0;
  std::vector<std::string> notes;  ///< what llama.cpp does otherwise, a sentence each
};

/// Writes a model with its tokenizer and chat template for llama.cpp. Matrices are of the request's type, in float16
/// where their rows are no whole blocks of it; norms, biases and positions are in float32, and in a file of q4_0 the
/// matrix of the output is q8_0, as it loses most. The file appears whole or not at all.
/// Failure (exit status 2): llama.cpp does not compute such a model, or has no such tokenizer; the file exists; the
/// disk.
core::Result<WrittenFile> write_model(const WriteRequest& request);

}  // namespace runner::gguf
