#include "runner/pretrained/write/tensor_floats.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "runner/artifact/io/element.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/artifact/tensor_bytes.h"

namespace runner::pretrained {
namespace {

using artifact::TensorBytes;

template <typename Element>
void write_as(const float* from, std::int64_t count, char* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = Element::to_bits(from[i]);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
  }
}

}  // namespace

std::int64_t elements(const TensorBytes& bytes) {
  std::int64_t count = 1;
  for (const std::int64_t size : bytes.shape) count *= size;
  return count;
}

void read_floats(const TensorBytes& bytes, std::int64_t first, std::int64_t count, float* to) {
  artifact::visit_element(bytes.dtype, [&](auto element) {
    using Element = decltype(element);
    constexpr std::int64_t kSize = sizeof(typename Element::Bits);
    std::vector<char> scratch;
    const char* const from = artifact::bytes_at(bytes, first * kSize, count * kSize, scratch);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<float>(Element::value(artifact::bits_at<Element>(from, i)));
    }
  });
}

void write_floats(const std::string& dtype, const float* from, std::int64_t count, char* to) {
  if (dtype == "BF16") return write_as<artifact::Bf16Element>(from, count, to);
  if (dtype == "F16") return write_as<artifact::F16Element>(from, count, to);
  if (dtype == "F64") return write_as<artifact::PlainElement<double>>(from, count, to);
  write_as<artifact::PlainElement<float>>(from, count, to);
}

std::vector<float> floats(const TensorBytes& bytes) {
  std::vector<float> all(static_cast<std::size_t>(elements(bytes)));
  read_floats(bytes, 0, elements(bytes), all.data());
  return all;
}

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
  tensor.bytes = elements(tensor) * artifact::safetensors_item_bytes(dtype);
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
    const std::vector<float> values = floats(with_content(tensor, own));
    write_floats(dtype, values.data(), static_cast<std::int64_t>(values.size()), content.data());
    return content;
  };
  return made;
}

}  // namespace runner::pretrained
