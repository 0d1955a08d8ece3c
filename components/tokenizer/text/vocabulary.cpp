#include "components/tokenizer/text/vocabulary.h"

#include <algorithm>
#include <cstring>

namespace components::tokenizer {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::uint64_t hash_of(std::string_view bytes) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = bytes.size() * kOdd ^ 0x2545F4914F6CDD1Du;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = mix(hash ^ word, kOdd);
  }
  std::uint64_t word = 0;
  if (left >= 4) {
    std::uint32_t first = 0, last = 0;
    std::memcpy(&first, at, 4);
    std::memcpy(&last, at + left - 4, 4);
    word = static_cast<std::uint64_t>(first) << 32 | last;
  } else if (left > 0) {
    word = static_cast<std::uint64_t>(static_cast<unsigned char>(at[0])) << 16 |
           static_cast<std::uint64_t>(static_cast<unsigned char>(at[left / 2])) << 8 |
           static_cast<unsigned char>(at[left - 1]);
  }
  return mix(hash ^ word, kOdd ^ 0xD6E8FEB86659FD93u);
}

void Vocabulary::reserve(std::size_t tokens) {
  places_.reserve(tokens);
  while (slots_.size() < tokens * 2) grow();
}

bool Vocabulary::add(std::string_view token, std::int32_t id) {
  if (slots_.size() < (count_ + 1) * 2) grow();
  if (token_of(id)) return false;
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(token) & mask;
  for (; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    if (text_of(slots_[slot]) == token) return false;
  }
  if (id >= id_limit()) places_.resize(static_cast<std::size_t>(id) + 1);
  places_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(bytes_.size()),
                                           static_cast<std::uint32_t>(token.size())};
  bytes_ += token;
  slots_[slot] = id;
  ++count_;
  longest_ = std::max(longest_, token.size());
  return true;
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view token) const {
  if (slots_.empty() || token.size() > longest_) return std::nullopt;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_of(token) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    if (text_of(slots_[slot]) == token) return slots_[slot];
  }
  return std::nullopt;
}

std::optional<std::string_view> Vocabulary::token_of(std::int32_t id) const {
  if (id < 0 || id >= id_limit() || places_[static_cast<std::size_t>(id)].begin == kNone) return std::nullopt;
  return text_of(id);
}

void Vocabulary::grow() {
  std::vector<std::int32_t> slots(std::max<std::size_t>(64, slots_.size() * 2), -1);
  const std::size_t mask = slots.size() - 1;
  for (const std::int32_t id : slots_) {
    if (id < 0) continue;
    std::size_t slot = hash_of(text_of(id)) & mask;
    while (slots[slot] >= 0) slot = (slot + 1) & mask;
    slots[slot] = id;
  }
  slots_ = std::move(slots);
}

}  // namespace components::tokenizer
