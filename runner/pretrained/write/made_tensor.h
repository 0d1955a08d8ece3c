#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/pretrained/folder_writer.h"

// Tensors whose content is made as they are written.

namespace runner::pretrained {

/// A tensor of that type, of which `make` is not set yet.
WrittenTensor to_be_made(artifact::TensorBytes tensor, const std::string& dtype);
/// With its content, which lies in `own` if it had to be made.
artifact::TensorBytes with_content(const WrittenTensor& tensor, std::vector<char>& own);
/// The tensor in another floating type of safetensors, made as it is written; "" keeps its own, as integers do.
WrittenTensor converted(const WrittenTensor& tensor, const std::string& dtype);

/// The columns of a matrix with that number of rows, as rows.
std::vector<float> turned(const std::vector<float>& matrix, std::int64_t rows);

}  // namespace runner::pretrained
