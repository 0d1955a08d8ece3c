#include "runner/pretrained/write/quantized_weights.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runner/artifact/tensor_bytes.h"
#include "runner/pretrained/tensor_floats.h"
#include "runner/pretrained/write/made_tensor.h"

namespace runner::pretrained {
namespace {

constexpr std::int64_t kRowsOfThread = 16;

std::vector<char> bytes_of(const std::vector<float>& numbers) {
  std::vector<char> bytes(numbers.size() * sizeof(float));
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<float> numbers_of(const PackedWeight& weight) {
  std::vector<float> numbers(static_cast<std::size_t>(weight.out * weight.in));
  for_pieces(weight.out, kRowsOfThread, [&](std::int64_t first, std::int64_t last) {
    weight.read_rows(first, last - first, numbers.data() + first * weight.in);
  });
  return numbers;
}

}  // namespace

WrittenTensor unpacked(const std::string& name, const PackedWeight& weight, bool is_turned) {
  std::vector<std::int64_t> shape = {weight.out, weight.in};
  if (is_turned) std::swap(shape[0], shape[1]);
  WrittenTensor made = to_be_made({name, "F32", std::move(shape), nullptr, 0, {}}, "F32");
  made.make = [weight, is_turned] {
    const std::vector<float> numbers = numbers_of(weight);
    return bytes_of(is_turned ? turned(numbers, weight.out) : numbers);
  };
  return made;
}

WrittenTensor rounded(const WrittenTensor& weight, const PackForm& form, bool is_turned) {
  WrittenTensor made = to_be_made(weight.bytes, "F32");
  made.make = [weight, form, is_turned] {
    std::vector<char> own;
    const artifact::TensorBytes bytes = with_content(weight, own);
    std::vector<float> numbers = floats_of(bytes);
    if (is_turned) numbers = turned(numbers, bytes.shape[0]);
    const std::int64_t out = bytes.shape[is_turned ? 1 : 0], in = bytes.shape[is_turned ? 0 : 1];
    const Packed packed = pack(numbers, in, form);
    numbers = numbers_of(packed.view(form, out, in));
    return bytes_of(is_turned ? turned(numbers, out) : numbers);
  };
  return made;
}

}  // namespace runner::pretrained
