#include "runner/core/picture/png.h"

#include <algorithm>
#include <utility>

#include "runner/core/picture/crc32.h"

// PNG (ISO/IEC 15948) with deflate (RFC 1951) in its simplest form that still makes a chart small: each row as what
// differs from the row above, and runs of one byte by the fixed codes. A library would be the only dependency of a
// picture.

namespace runner::core {
namespace {

constexpr int kRunMin = 3, kRunMax = 258;  // of a match in deflate

/// Bits into bytes, the lowest first.
class BitWriter {
 public:
  void bits(std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bit((value >> i) & 1);
  }
  /// Huffman codes are written with their highest bit first.
  void code(std::uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) bit((value >> i) & 1);
  }
  std::string bytes() && {
    if (used_ > 0) bytes_ += static_cast<char>(byte_);
    return std::move(bytes_);
  }

 private:
  void bit(std::uint32_t value) {
    byte_ |= value << used_;
    if (++used_ < 8) return;
    bytes_ += static_cast<char>(byte_);
    byte_ = 0;
    used_ = 0;
  }

  std::string bytes_;
  std::uint32_t byte_ = 0;
  int used_ = 0;
};

/// A literal or a length by the fixed codes of section 3.2.6.
void put_symbol(int symbol, BitWriter& out) {
  if (symbol < 144) {
    out.code(0x30 + symbol, 8);
  } else if (symbol < 256) {
    out.code(0x190 + symbol - 144, 9);
  } else if (symbol < 280) {
    out.code(symbol - 256, 7);
  } else {
    out.code(0xC0 + symbol - 280, 8);
  }
}

/// Repeats the previous byte: a length (section 3.2.5) at distance 1.
void put_run(int length, BitWriter& out) {
  if (length == kRunMax) {
    put_symbol(285, out);
  } else {
    int extra_bits = 0;
    while (((length - 3) >> extra_bits) >= 8) ++extra_bits;
    const int symbol = extra_bits == 0 ? 257 + (length - 3) : 257 + 4 * extra_bits + ((length - 3) >> extra_bits);
    put_symbol(symbol, out);
    out.bits((length - 3) & ((1 << extra_bits) - 1), extra_bits);
  }
  out.code(0, 5);
}

std::string deflated(const std::string& bytes) {
  BitWriter out;
  out.bits(1, 1);  // the last block
  out.bits(1, 2);  // fixed codes
  for (std::size_t at = 0; at < bytes.size();) {
    put_symbol(static_cast<unsigned char>(bytes[at]), out);
    std::size_t end = at + 1;
    while (end < bytes.size() && bytes[end] == bytes[at]) ++end;
    int run = static_cast<int>(end - at) - 1;
    for (; run >= kRunMin; run -= std::min(run, kRunMax)) put_run(std::min(run, kRunMax), out);
    for (; run > 0; --run) put_symbol(static_cast<unsigned char>(bytes[at]), out);
    at = end;
  }
  put_symbol(256, out);
  return std::move(out).bytes();
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::uint32_t adler32(const std::string& bytes) {
  std::uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(crc32(type + data));
}

}  // namespace

std::string png(const std::vector<std::uint8_t>& rgb, int width, int height) {
  const std::size_t row_bytes = static_cast<std::size_t>(width) * 3;
  std::string rows;
  rows.reserve((row_bytes + 1) * height);
  for (std::size_t at = 0; at < rgb.size(); ++at) {
    if (at % row_bytes == 0) rows += '\x02';  // filter "up"
    rows += static_cast<char>(rgb[at] - (at < row_bytes ? 0 : rgb[at - row_bytes]));
  }
  const std::string head = big_endian(width) + big_endian(height) + std::string("\x08\x02\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", head) +
         chunk("IDAT", "\x78\x01" + deflated(rows) + big_endian(adler32(rows))) + chunk("IEND", "");
}

}  // namespace runner::core
