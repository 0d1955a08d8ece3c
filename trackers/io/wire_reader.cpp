#include "trackers/io/wire_reader.h"

#include <bit>

namespace trackers {

double WireReader::Field::real() const { return std::bit_cast<double>(bits); }

float WireReader::Field::real32() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }

std::optional<WireReader::Field> WireReader::next() {
  if (rest_.empty() || damaged_) return std::nullopt;
  damaged_ = true;  // until the field is complete
  const auto key = varint();
  if (!key) return std::nullopt;
  Field field;
  field.number = static_cast<int>(*key >> 3);
  std::optional<std::uint64_t> bits;
  switch (*key & 7) {
    case 0: bits = varint(); break;
    case 1: bits = fixed(8); break;
    case 2:
      field.is_bytes = true;
      bits = varint();
      if (!bits || *bits > rest_.size()) return std::nullopt;
      field.bytes = rest_.substr(0, *bits);
      rest_.remove_prefix(*bits);
      break;
    case 5: bits = fixed(4); break;
    default: return std::nullopt;
  }
  if (!bits) return std::nullopt;
  field.bits = *bits;
  damaged_ = false;
  return field;
}

std::optional<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::fixed(std::size_t bytes) {
  if (rest_.size() < bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  rest_.remove_prefix(bytes);
  return value;
}

}  // namespace trackers
