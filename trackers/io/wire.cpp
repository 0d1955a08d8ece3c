#include "trackers/io/wire.h"

#include <bit>

namespace trackers {
namespace {

// Kinds of fields.
constexpr int kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

std::uint64_t key(int field, int kind) { return static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(kind); }

void append_little_endian(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

Wire& Wire::integer(int field, std::int64_t value) {
  varint(key(field, kVarint));
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Wire& Wire::real(int field, double value) {
  varint(key(field, kFixed64));
  fixed64(value);
  return *this;
}

Wire& Wire::real32(int field, float value) {
  varint(key(field, kFixed32));
  append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
  return *this;
}

Wire& Wire::text(int field, std::string_view value) {
  varint(key(field, kLengthDelimited));
  varint(value.size());
  bytes_.append(value);
  return *this;
}

void Wire::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void Wire::fixed64(double value) { append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8); }

}  // namespace trackers
