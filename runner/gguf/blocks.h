#pragma once

#include <cstdint>

#include "runner/gguf/format.h"

namespace runner::gguf {

/// Writes `count` numbers, whole blocks of the type, as they lie in a file: row_bytes(type, count) bytes. A block of
/// q8_0 is a scale and 32 bytes, one of q4_0 a scale and 32 halves of bytes; both by the rounding of ggml's own
/// quantize_row_q8_0_ref and quantize_row_q4_0_ref, byte for byte those of Python's `gguf`.
void encode(TensorType type, const float* from, std::int64_t count, char* to);

/// The inverse, exact in float32.
void decode(TensorType type, const char* from, std::int64_t count, float* to);

}  // namespace runner::gguf
