#include "trackers/server/blake2b.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace trackers {
namespace {

constexpr std::size_t kBlockBytes = 128;
constexpr std::uint64_t kParameters = 0x01010008;  // a tree of one node, no key, a digest of 8 bytes
constexpr std::size_t kSaltWord = 4;

constexpr std::array<std::uint64_t, 8> kInitial = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                                   0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                                   0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

constexpr std::size_t kRounds = 12;
// Which word of the block each step of a round takes; the last two rounds are the first two once more.
constexpr std::array<std::array<std::uint8_t, 16>, 10> kOrder = {{
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}};

// The four columns of the state, then its four diagonals.
constexpr std::array<std::array<std::uint8_t, 4>, 8> kLines = {{{0, 4, 8, 12},
                                                                {1, 5, 9, 13},
                                                                {2, 6, 10, 14},
                                                                {3, 7, 11, 15},
                                                                {0, 5, 10, 15},
                                                                {1, 6, 11, 12},
                                                                {2, 7, 8, 13},
                                                                {3, 4, 9, 14}}};

using State = std::array<std::uint64_t, 8>;
using Words = std::array<std::uint64_t, 16>;

Words words_of(std::string_view block) {
  Words words{};
  for (std::size_t i = 0; i < block.size(); ++i) {
    words[i / 8] |= std::uint64_t{static_cast<unsigned char>(block[i])} << (8 * (i % 8));
  }
  return words;
}

void mix(Words& v, const std::array<std::uint8_t, 4>& line, std::uint64_t x, std::uint64_t y) {
  auto &a = v[line[0]], &b = v[line[1]], &c = v[line[2]], &d = v[line[3]];
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

void compress(State& state, std::string_view block, std::uint64_t bytes_so_far, bool is_last) {
  const Words words = words_of(block);
  Words v{};
  std::copy(state.begin(), state.end(), v.begin());
  std::copy(kInitial.begin(), kInitial.end(), v.begin() + state.size());
  v[12] ^= bytes_so_far;
  if (is_last) v[14] = ~v[14];
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto& order = kOrder[round % kOrder.size()];
    for (std::size_t i = 0; i < kLines.size(); ++i) mix(v, kLines[i], words[order[2 * i]], words[order[2 * i + 1]]);
  }
  for (std::size_t i = 0; i < state.size(); ++i) state[i] ^= v[i] ^ v[i + state.size()];
}

}  // namespace

std::uint64_t blake2b(std::string_view bytes, std::uint64_t salt) {
  State state = kInitial;
  state[0] ^= kParameters;
  state[kSaltWord] ^= salt;
  std::size_t at = 0;
  for (; bytes.size() - at > kBlockBytes; at += kBlockBytes) {
    compress(state, bytes.substr(at, kBlockBytes), at + kBlockBytes, false);
  }
  compress(state, bytes.substr(at), bytes.size(), true);
  return state[0];
}

}  // namespace trackers
