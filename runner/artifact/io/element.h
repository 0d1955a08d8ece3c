#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace runner::artifact {

// One type for each of safetensors' words: how an element lies in the file (`Bits`), and what it is (`value`, as the
// narrowest type of the machine that holds it exactly). `to_bits` exists for those that weights are converted to; it
// rounds to the nearest, ties to even, as LibTorch does.

template <typename T>
struct PlainElement {
  using Bits = T;
  static T value(Bits bits) { return bits; }
  static Bits to_bits(double value) { return static_cast<T>(value); }
};

struct BoolElement {
  using Bits = std::uint8_t;
  static int value(Bits bits) { return bits != 0 ? 1 : 0; }
};

struct Bf16Element {
  using Bits = std::uint16_t;
  static float value(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Bits to_bits(double value) {
    // By way of float, as LibTorch converts: the rounding of a double happens there.
    const auto narrow = static_cast<float>(value);
    if (std::isnan(narrow)) return 0x7FC0;
    const auto bits = std::bit_cast<std::uint32_t>(narrow);
    return static_cast<Bits>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
};

struct F16Element {
  using Bits = std::uint16_t;
  __extension__ using Half = _Float16;
  static float value(Bits bits) { return static_cast<float>(std::bit_cast<Half>(bits)); }
  static Bits to_bits(double value) { return std::bit_cast<Bits>(static_cast<Half>(static_cast<float>(value))); }
};

/// OCP's 8-bit formats: E4M3 has no infinity and one NaN, E5M2 is the upper half of an F16.
struct F8E4M3Element {
  using Bits = std::uint8_t;
  static float value(Bits bits) {
    const int exponent = (bits >> 3) & 15;
    const int fraction = bits & 7;
    float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                               : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    if ((bits & 0x7F) == 0x7F) size = std::numeric_limits<float>::quiet_NaN();
    return (bits & 0x80) != 0 ? -size : size;
  }
};

struct F8E5M2Element {
  using Bits = std::uint8_t;
  static float value(Bits bits) { return F16Element::value(static_cast<std::uint16_t>(bits << 8)); }
};

/// Calls `visit` with an object of the element's type; false when `dtype` is no word of safetensors.
template <typename Visit>
bool visit_element(std::string_view dtype, Visit&& visit) {
  if (dtype == "F64") return visit(PlainElement<double>{}), true;
  if (dtype == "F32") return visit(PlainElement<float>{}), true;
  if (dtype == "BF16") return visit(Bf16Element{}), true;
  if (dtype == "F16") return visit(F16Element{}), true;
  if (dtype == "I64") return visit(PlainElement<std::int64_t>{}), true;
  if (dtype == "I32") return visit(PlainElement<std::int32_t>{}), true;
  if (dtype == "I16") return visit(PlainElement<std::int16_t>{}), true;
  if (dtype == "I8") return visit(PlainElement<std::int8_t>{}), true;
  if (dtype == "U8") return visit(PlainElement<std::uint8_t>{}), true;
  if (dtype == "BOOL") return visit(BoolElement{}), true;
  if (dtype == "U16") return visit(PlainElement<std::uint16_t>{}), true;
  if (dtype == "U32") return visit(PlainElement<std::uint32_t>{}), true;
  if (dtype == "U64") return visit(PlainElement<std::uint64_t>{}), true;
  if (dtype == "F8_E4M3") return visit(F8E4M3Element{}), true;
  if (dtype == "F8_E5M2") return visit(F8E5M2Element{}), true;
  return false;
}

/// The element at `index`; a file of another program may have its data at any address.
template <typename Element>
typename Element::Bits bits_at(const void* data, std::int64_t index) {
  typename Element::Bits bits;
  std::memcpy(&bits, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof bits), sizeof bits);
  return bits;
}

/// Whether the type holds numbers that may be converted to each other: the floating ones.
inline bool is_floating(std::string_view dtype) { return dtype.starts_with("F") || dtype == "BF16"; }

}  // namespace runner::artifact
