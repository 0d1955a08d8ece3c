#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/pretrained/folder_writer.h"

// What is computed of tensors that are written, in float32.

namespace runner::pretrained {

std::int64_t elements(const artifact::TensorBytes& bytes);
/// Elements [first, first + count).
void read_floats(const artifact::TensorBytes& bytes, std::int64_t first, std::int64_t count, float* to);
std::vector<float> floats(const artifact::TensorBytes& bytes);
/// `dtype`: a floating one of safetensors.
void write_floats(const std::string& dtype, const float* from, std::int64_t count, char* to);
/// The columns of a matrix with that number of rows, as rows.
std::vector<float> turned(const std::vector<float>& matrix, std::int64_t rows);

/// A tensor of that type, of which `make` is not set yet.
WrittenTensor to_be_made(artifact::TensorBytes tensor, const std::string& dtype);
/// With its content, which lies in `own` if it had to be made.
artifact::TensorBytes with_content(const WrittenTensor& tensor, std::vector<char>& own);
/// The tensor in another floating type of safetensors, made as it is written; "" keeps its own, as integers do.
WrittenTensor converted(const WrittenTensor& tensor, const std::string& dtype);

}  // namespace runner::pretrained
