#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::pretrained {

std::int64_t elements_of(const artifact::TensorBytes& tensor);

/// Elements [first, first + count) of a floating tensor as float32, rounded to the nearest.
void read_floats(const artifact::TensorBytes& tensor, std::int64_t first, std::int64_t count, float* to);

/// All of them.
std::vector<float> floats_of(const artifact::TensorBytes& tensor);

/// `dtype`: BF16, F16, F64, or else F32; rounded to the nearest, ties to even.
void write_floats(const std::string& dtype, const float* from, std::int64_t count, char* to);

}  // namespace runner::pretrained
