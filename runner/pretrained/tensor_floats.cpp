#include "runner/pretrained/tensor_floats.h"

#include <cstring>

#include "runner/artifact/io/element.h"
#include "runner/artifact/tensor_bytes.h"

namespace runner::pretrained {
namespace {

template <typename Element>
void write_as(const float* from, std::int64_t count, char* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = Element::to_bits(from[i]);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
  }
}

}  // namespace

std::int64_t elements_of(const artifact::TensorBytes& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

void read_floats(const artifact::TensorBytes& tensor, std::int64_t first, std::int64_t count, float* to) {
  artifact::visit_element(tensor.dtype, [&](auto element) {
    using Element = decltype(element);
    constexpr std::int64_t kSize = sizeof(typename Element::Bits);
    std::vector<char> scratch;
    const char* const from = artifact::bytes_at(tensor, first * kSize, count * kSize, scratch);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(Element::value(artifact::bits_at<Element>(from, i)));
  });
}

std::vector<float> floats_of(const artifact::TensorBytes& tensor) {
  std::vector<float> all(static_cast<std::size_t>(elements_of(tensor)));
  read_floats(tensor, 0, elements_of(tensor), all.data());
  return all;
}

void write_floats(const std::string& dtype, const float* from, std::int64_t count, char* to) {
  if (dtype == "BF16") return write_as<artifact::Bf16Element>(from, count, to);
  if (dtype == "F16") return write_as<artifact::F16Element>(from, count, to);
  if (dtype == "F64") return write_as<artifact::PlainElement<double>>(from, count, to);
  write_as<artifact::PlainElement<float>>(from, count, to);
}

}  // namespace runner::pretrained
