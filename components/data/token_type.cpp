#include "components/data/token_type.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace components::data {
namespace {

constexpr std::int64_t kLookedAt = 1 << 15;  // bytes at each place
constexpr std::size_t kWordsMin = 32;        // fewer of them prove nothing
constexpr std::string_view kNumpy = "\x93NUMPY";

using Bytes = std::vector<unsigned char>;

Bytes read_at(std::ifstream& file, std::int64_t at) {
  Bytes bytes(kLookedAt);
  file.clear();
  file.seekg(at);
  file.read(reinterpret_cast<char*>(bytes.data()), kLookedAt);
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  bytes.resize(bytes.size() / 8 * 8);
  return bytes;
}

std::uint64_t word_at(const Bytes& bytes, std::size_t begin, std::size_t size, bool big_endian) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i)
    word |= std::uint64_t{bytes[begin + (big_endian ? size - 1 - i : i)]} << (8 * i);
  return word;
}

/// How well the bytes fit one type: whether all are ids below vocab_size, and the largest.
struct Fit {
  bool fits = true;
  std::uint64_t largest = 0;
};

Fit fit(const std::vector<Bytes>& looks, std::size_t size, bool big_endian, std::int64_t vocab_size) {
  Fit found;
  for (const Bytes& bytes : looks) {
    for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
      const std::uint64_t word = word_at(bytes, i, size, big_endian);
      found.fits = found.fits && word < static_cast<std::uint64_t>(vocab_size);
      found.largest = std::max(found.largest, word);
    }
  }
  return found;
}

/// Whether every second word of `size` bytes, the first or the second of a pair, is at most `high`, and others are not:
/// the upper half of a word that is twice as long.
bool has_upper_halves(const std::vector<Bytes>& looks, std::size_t size, bool first, std::uint64_t high) {
  bool any = false;
  for (const Bytes& bytes : looks) {
    for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
      const bool is_upper = (i / size % 2 == 0) == first;
      const bool is_large = word_at(bytes, i, size, first) > high;
      if (is_upper && is_large) return false;
      any = any || is_large;
    }
  }
  return any;
}

}  // namespace

OtherType look_at_type(const std::string& path, const TokenStream::Layout& layout) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, ignored));
  if (!file || ignored) return {};
  const Bytes start = read_at(file, 0);
  const auto begins_with = [&start](std::string_view text) {
    return start.size() >= text.size() && std::memcmp(start.data(), text.data(), text.size()) == 0;
  };
  if (begins_with(kNumpy) && layout.header_bytes == 0) {
    const std::size_t of_length = start[6] == 1 ? 2 : 4;
    const std::uint64_t header = 8 + of_length + word_at(start, 8, of_length, false);
    return {"is a NumPy file, which begins with a header", "write header_bytes: " + std::to_string(header)};
  }
  const std::int64_t body = bytes - layout.header_bytes;
  const std::vector<Bytes> looks = {read_at(file, layout.header_bytes),
                                    read_at(file, layout.header_bytes + body / 2 / 8 * 8)};
  const auto size = static_cast<std::size_t>(layout.token_bytes);
  if (looks[0].size() / size < kWordsMin) return {};
  const std::string own = size == 2 ? "uint16" : "uint32";
  if (has_upper_halves(looks, 4, false, 0) || has_upper_halves(looks, 4, true, 0)) {
    return {"looks like int64: every second uint32 of it is 0",
            "write the tokens as little-endian uint16 or uint32, which dtype accepts"};
  }
  const std::uint64_t high = static_cast<std::uint64_t>(layout.vocab_size - 1) >> 16;
  if (size == 2 && has_upper_halves(looks, 2, false, high)) {
    return {"looks like uint32: every second uint16 of it is " + std::string(high == 0 ? "0" : "small"),
            "write dtype: uint32"};
  }
  if (size == 2 && has_upper_halves(looks, 2, true, high)) {
    return {"looks like big-endian uint32: every second uint16 of it is " + std::string(high == 0 ? "0" : "small"),
            "write the tokens as little-endian uint16 or uint32, which dtype accepts"};
  }
  if (fit(looks, size, false, layout.vocab_size).fits) return {};
  if (fit(looks, size, true, layout.vocab_size).fits) {
    return {"looks big-endian: its tokens are below vocab_size with their bytes exchanged only",
            "write the tokens as little-endian " + own};
  }
  if (size == 4 && fit(looks, 2, false, layout.vocab_size).fits) {
    return {"looks like uint16: as uint32 its tokens are not below vocab_size", "write dtype: uint16"};
  }
  if (size == 2 && fit(looks, 4, false, layout.vocab_size).fits) {
    return {"looks like uint32: as uint16 its tokens are not below vocab_size", "write dtype: uint32"};
  }
  if (fit(looks, 1, false, layout.vocab_size).fits) {
    return {"looks like uint8: as " + own + " its tokens are not below vocab_size",
            "write the tokens as uint16 or uint32, which dtype accepts"};
  }
  return {};
}

}  // namespace components::data
