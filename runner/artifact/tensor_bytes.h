#pragma once

#include <cstdint>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::artifact {

/// Bytes [begin, begin + count) of a tensor, piece by piece, in order.
std::vector<BytesPiece> pieces_of(const TensorBytes& tensor, std::int64_t begin, std::int64_t count);
inline std::vector<BytesPiece> pieces_of(const TensorBytes& tensor) { return pieces_of(tensor, 0, tensor.bytes); }

/// Bytes [begin, begin + count) of a tensor in one piece: where they are, or else copied to `scratch`.
const char* bytes_at(const TensorBytes& tensor, std::int64_t begin, std::int64_t count, std::vector<char>& scratch);

/// Rows [first, first + count) as a tensor of the same name. A tensor without dimensions is one row.
TensorBytes rows_of(const TensorBytes& tensor, std::int64_t first, std::int64_t count);

/// Whether all bytes are the same. Both have as many.
bool same_bytes(const TensorBytes& one, const TensorBytes& other);

}  // namespace runner::artifact
