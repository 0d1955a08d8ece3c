#include "runner/gguf/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runner/artifact/io/element.h"

namespace runner::gguf {
namespace {

using artifact::Bf16Element;
using artifact::F16Element;

constexpr std::int64_t kBlock = 32;
constexpr float kBytesMax = 127.0F;
constexpr float kHalvesMin = -8.0F;
constexpr int kHalvesMax = 15;
constexpr double kHalvesShift = 8.5;  // to between 0 and 16, and a half for rounding
constexpr std::uint8_t kLowHalf = 15;
constexpr int kHalfBits = 4;

void write_scale(float scale, char* to) {
  const F16Element::Bits bits = F16Element::to_bits(scale);
  std::memcpy(to, &bits, sizeof bits);
}

float read_scale(const char* from) {
  F16Element::Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  return F16Element::value(bits);
}

void encode_bytes(const float* from, char* to) {
  float most = 0.0F;
  for (std::int64_t i = 0; i < kBlock; ++i) most = std::max(most, std::fabs(from[i]));
  const float scale = most / kBytesMax;
  const float inverse = scale == 0.0F ? 0.0F : 1.0F / scale;
  write_scale(scale, to);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const auto value = static_cast<std::int8_t>(std::round(from[i] * inverse));  // halves away from zero
    std::memcpy(to + sizeof(F16Element::Bits) + i, &value, 1);
  }
}

void encode_halves(const float* from, char* to) {
  float most = from[0];  // with its sign: it becomes -8, the farthest of the numbers
  for (std::int64_t i = 1; i < kBlock; ++i) {
    if (std::fabs(from[i]) > std::fabs(most)) most = from[i];
  }
  const float scale = most / kHalvesMin;
  const float inverse = scale == 0.0F ? 0.0F : 1.0F / scale;
  write_scale(scale, to);
  const auto half = [&](std::int64_t i) {
    const auto shifted = static_cast<float>(static_cast<double>(from[i]) * static_cast<double>(inverse) + kHalvesShift);
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(shifted), 0, kHalvesMax));
  };
  for (std::int64_t i = 0; i < kBlock / 2; ++i) {
    to[sizeof(F16Element::Bits) + static_cast<std::size_t>(i)] =
        static_cast<char>(half(i) | half(i + kBlock / 2) << kHalfBits);
  }
}

void decode_bytes(const char* from, float* to) {
  const float scale = read_scale(from);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    std::int8_t value;
    std::memcpy(&value, from + sizeof(F16Element::Bits) + i, 1);
    to[i] = scale * static_cast<float>(value);
  }
}

void decode_halves(const char* from, float* to) {
  const float scale = read_scale(from);
  for (std::int64_t i = 0; i < kBlock / 2; ++i) {
    const auto both = static_cast<std::uint8_t>(from[sizeof(F16Element::Bits) + static_cast<std::size_t>(i)]);
    to[i] = scale * (static_cast<float>(both & kLowHalf) + kHalvesMin);
    to[i + kBlock / 2] = scale * (static_cast<float>(both >> kHalfBits) + kHalvesMin);
  }
}

template <typename Element>
void encode_each(const float* from, std::int64_t count, char* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const typename Element::Bits bits = Element::to_bits(from[i]);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
  }
}

template <typename Element>
void decode_each(const char* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = Element::value(artifact::bits_at<Element>(from, i));
}

}  // namespace

void encode(TensorType type, const float* from, std::int64_t count, char* to) {
  const BlockSize block = block_size(type);
  switch (type) {
    case TensorType::kF32: return encode_each<artifact::PlainElement<float>>(from, count, to);
    case TensorType::kF16: return encode_each<F16Element>(from, count, to);
    case TensorType::kBf16: return encode_each<Bf16Element>(from, count, to);
    case TensorType::kQ8_0:
      for (std::int64_t i = 0; i < count / kBlock; ++i) encode_bytes(from + i * kBlock, to + i * block.bytes);
      return;
    case TensorType::kQ4_0:
      for (std::int64_t i = 0; i < count / kBlock; ++i) encode_halves(from + i * kBlock, to + i * block.bytes);
      return;
  }
}

void decode(TensorType type, const char* from, std::int64_t count, float* to) {
  const BlockSize block = block_size(type);
  switch (type) {
    case TensorType::kF32: return decode_each<artifact::PlainElement<float>>(from, count, to);
    case TensorType::kF16: return decode_each<F16Element>(from, count, to);
    case TensorType::kBf16: return decode_each<Bf16Element>(from, count, to);
    case TensorType::kQ8_0:
      for (std::int64_t i = 0; i < count / kBlock; ++i) decode_bytes(from + i * block.bytes, to + i * kBlock);
      return;
    case TensorType::kQ4_0:
      for (std::int64_t i = 0; i < count / kBlock; ++i) decode_halves(from + i * block.bytes, to + i * kBlock);
      return;
  }
}

}  // namespace runner::gguf
