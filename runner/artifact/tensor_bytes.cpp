#include "runner/artifact/tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "runner/core/error.h"

namespace runner::artifact {
namespace {

constexpr std::int64_t kComparedAtOnce = 1 << 20;

}  // namespace

std::vector<BytesPiece> pieces_of(const TensorBytes& tensor, std::int64_t begin, std::int64_t count) {
  RUNNER_ASSERT(begin >= 0 && count >= 0 && begin + count <= tensor.bytes, "a range lies in its tensor");
  if (count == 0) return {};
  if (tensor.pieces.empty()) return {{static_cast<const char*>(tensor.data) + begin, count}};
  std::vector<BytesPiece> found;
  for (const BytesPiece& piece : tensor.pieces) {
    if (count == 0) break;
    if (begin >= piece.bytes) {
      begin -= piece.bytes;
      continue;
    }
    const std::int64_t size = std::min(count, piece.bytes - begin);
    found.push_back({piece.data + begin, size});
    count -= size;
    begin = 0;
  }
  return found;
}

const char* bytes_at(const TensorBytes& tensor, std::int64_t begin, std::int64_t count, std::vector<char>& scratch) {
  if (tensor.pieces.empty()) return static_cast<const char*>(tensor.data) + begin;
  const std::vector<BytesPiece> pieces = pieces_of(tensor, begin, count);
  if (pieces.size() == 1) return pieces.front().data;
  scratch.resize(static_cast<std::size_t>(count));
  char* next = scratch.data();
  for (const BytesPiece& piece : pieces) {
    std::memcpy(next, piece.data, static_cast<std::size_t>(piece.bytes));
    next += piece.bytes;
  }
  return scratch.data();
}

TensorBytes rows_of(const TensorBytes& tensor, std::int64_t first, std::int64_t count) {
  TensorBytes rows = tensor;
  const std::int64_t all = tensor.shape.empty() ? 1 : tensor.shape.front(), of_row = all > 0 ? tensor.bytes / all : 0;
  if (!tensor.shape.empty()) rows.shape.front() = count;
  rows.bytes = count * of_row;
  if (tensor.pieces.empty()) {
    rows.data = static_cast<const char*>(tensor.data) + first * of_row;
    return rows;
  }
  rows.pieces = pieces_of(tensor, first * of_row, rows.bytes);
  if (rows.pieces.size() == 1) {
    rows.data = rows.pieces.front().data;
    rows.pieces.clear();
  }
  return rows;
}

bool same_bytes(const TensorBytes& one, const TensorBytes& other) {
  RUNNER_ASSERT(one.bytes == other.bytes, "tensors of one size are compared");
  std::vector<char> of_one, of_other;
  for (std::int64_t begin = 0; begin < one.bytes; begin += kComparedAtOnce) {
    const std::int64_t count = std::min(kComparedAtOnce, one.bytes - begin);
    const char* const a = bytes_at(one, begin, count, of_one);
    if (std::memcmp(a, bytes_at(other, begin, count, of_other), static_cast<std::size_t>(count)) != 0) return false;
  }
  return true;
}

}  // namespace runner::artifact
