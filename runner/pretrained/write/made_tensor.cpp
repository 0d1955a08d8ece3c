#include "runner/pretrained/write/made_tensor.h"

#include <cstddef>
#include <utility>

#include "runner/artifact/io/element.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/pretrained/tensor_floats.h"

namespace runner::pretrained {

using artifact::TensorBytes;

std::vector<float> turned(const std::vector<float>& matrix, std::int64_t rows) {
  const auto columns = static_cast<std::int64_t>(matrix.size()) / rows;
  std::vector<float> other(matrix.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      other[static_cast<std::size_t>(c * rows + r)] = matrix[static_cast<std::size_t>(r * columns + c)];
    }
  }
  return other;
}

WrittenTensor to_be_made(TensorBytes tensor, const std::string& dtype) {
  tensor.data = nullptr;
  tensor.pieces.clear();
  tensor.dtype = dtype;
  tensor.bytes = elements_of(tensor) * artifact::safetensors_item_bytes(dtype);
  return {std::move(tensor)};
}

TensorBytes with_content(const WrittenTensor& tensor, std::vector<char>& own) {
  TensorBytes bytes = tensor.bytes;
  if (!tensor.make) return bytes;
  own = tensor.make();
  bytes.data = own.data();
  return bytes;
}

WrittenTensor converted(const WrittenTensor& tensor, const std::string& dtype) {
  if (dtype.empty() || dtype == tensor.bytes.dtype || !artifact::is_floating(tensor.bytes.dtype)) return tensor;
  WrittenTensor made = to_be_made(tensor.bytes, dtype);
  made.make = [tensor, dtype, bytes = made.bytes.bytes] {
    std::vector<char> content(static_cast<std::size_t>(bytes)), own;
    const std::vector<float> values = floats_of(with_content(tensor, own));
    write_floats(dtype, values.data(), static_cast<std::int64_t>(values.size()), content.data());
    return content;
  };
  return made;
}

}  // namespace runner::pretrained
