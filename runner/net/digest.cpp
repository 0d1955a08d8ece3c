#include "runner/net/digest.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace runner::net {
namespace {

constexpr std::size_t kBlockBytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t word_at(std::string_view block, std::size_t index) {
  std::uint32_t word = 0;
  for (std::size_t i = 4 * index; i < 4 * index + 4; ++i) word = word << 8 | static_cast<unsigned char>(block[i]);
  return word;
}

void sha256_block(State& state, std::string_view block) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t i = 0; i < 16; ++i) words[i] = word_at(block, i);
  for (std::size_t i = 16; i < words.size(); ++i) {
    const std::uint32_t early = words[i - 15], late = words[i - 2];
    const std::uint32_t s0 = std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3;
    const std::uint32_t s1 = std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10;
    words[i] = words[i - 16] + s0 + words[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += mixed[i];
}

void sha1_block(State& state, std::string_view block) {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < 16; ++i) words[i] = word_at(block, i);
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t mixed = 0, constant = 0;
    if (i < 20) {
      mixed = (b & c) | (~b & d), constant = 0x5a827999;
    } else if (i < 40) {
      mixed = b ^ c ^ d, constant = 0x6ed9eba1;
    } else if (i < 60) {
      mixed = (b & c) | (b & d) | (c & d), constant = 0x8f1bbcdc;
    } else {
      mixed = b ^ c ^ d, constant = 0xca62c1d6;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + words[i];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  const std::array<std::uint32_t, 5> added = {a, b, c, d, e};
  for (std::size_t i = 0; i < added.size(); ++i) state[i] += added[i];
}

constexpr State kSha256 = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr State kSha1 = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0, 0, 0, 0};

}  // namespace

Digest::Digest(Kind kind) : kind_(kind), state_(kind == Kind::kSha1 ? kSha1 : kSha256) {}

void Digest::compress(std::string_view block) {
  if (kind_ == Kind::kSha1) {
    sha1_block(state_, block);
  } else {
    sha256_block(state_, block);
  }
}

void Digest::add(std::string_view bytes) {
  bytes_ += bytes.size();
  if (!rest_.empty()) {
    const std::size_t taken = std::min(kBlockBytes - rest_.size(), bytes.size());
    rest_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (rest_.size() < kBlockBytes) return;
    compress(rest_);
    rest_.clear();
  }
  for (; bytes.size() >= kBlockBytes; bytes.remove_prefix(kBlockBytes)) compress(bytes.substr(0, kBlockBytes));
  rest_ = bytes;
}

std::string Digest::hex() {
  const std::uint64_t bits = 8 * bytes_;
  std::string last = rest_ + '\x80';
  last.resize((last.size() + 8 + kBlockBytes - 1) / kBlockBytes * kBlockBytes - 8);
  for (int shift = 56; shift >= 0; shift -= 8) last += static_cast<char>(bits >> shift & 0xff);
  for (std::size_t at = 0; at < last.size(); at += kBlockBytes) {
    compress(std::string_view(last).substr(at, kBlockBytes));
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t word = 0; word < (kind_ == Kind::kSha1 ? 5U : 8U); ++word) {
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[state_[word] >> shift & 0xf];
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  Digest digest(Digest::Kind::kSha256);
  digest.add(bytes);
  return digest.hex();
}

}  // namespace runner::net
