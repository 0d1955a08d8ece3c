#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace components::tokenizer {

/// A hash of bytes, the same on every machine.
std::uint64_t hash_of(std::string_view bytes);

/// Tokens by number and numbers by token. Numbers may have holes.
class Vocabulary {
 public:
  static constexpr std::int64_t kTokensMax = 4'000'000;
  static constexpr std::int64_t kIdsMax = 16'000'000;

  void reserve(std::size_t tokens);
  /// False when the token is there already, or its number belongs to another. The number is in [0, kIdsMax).
  bool add(std::string_view token, std::int32_t id);

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// Nothing when no token has that number.
  std::optional<std::string_view> token_of(std::int32_t id) const;

  std::size_t size() const { return count_; }
  /// The largest number and one.
  std::int32_t id_limit() const { return static_cast<std::int32_t>(places_.size()); }
  std::size_t longest() const { return longest_; }  ///< bytes

 private:
  struct Place {
    std::uint32_t begin = kNone, size = 0;  // of bytes_
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void grow();
  std::string_view text_of(std::int32_t id) const {
    const Place& place = places_[static_cast<std::size_t>(id)];
    return std::string_view(bytes_).substr(place.begin, place.size);
  }

  std::string bytes_;
  std::vector<Place> places_;        // by number
  std::vector<std::int32_t> slots_;  // a hash table; -1 is free
  std::size_t count_ = 0, longest_ = 0;
};

}  // namespace components::tokenizer
