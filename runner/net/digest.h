#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace runner::net {

/// A checksum of bytes that arrive in pieces.
class Digest {
 public:
  enum class Kind { kSha1, kSha256 };  ///< FIPS 180-4
  explicit Digest(Kind kind);

  void add(std::string_view bytes);
  /// 40 or 64 hex digits; nothing may be added after it.
  std::string hex();

 private:
  void compress(std::string_view block);

  Kind kind_;
  std::array<std::uint32_t, 8> state_;
  std::string rest_;  ///< less than a block
  std::uint64_t bytes_ = 0;
};

/// SHA-256 as 64 hex digits: of "abc" it is ba7816bf...f20015ad.
std::string sha256(std::string_view bytes);

}  // namespace runner::net
