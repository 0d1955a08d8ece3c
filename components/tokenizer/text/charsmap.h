#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace components::tokenizer {

/// The texts that a model's normalizer writes for others: a double-array trie, and what its values point at.
class Charsmap {
 public:
  Charsmap() = default;
  /// `place`: file and field for messages. Throws RunError when the map is cut short.
  Charsmap(std::string_view map, const std::string& place);

  /// The longest text of the map that `text` begins with: its length, and what stands for it. Length 0 for none.
  std::pair<std::size_t, std::string_view> find(std::string_view text) const { return find(text, true); }
  /// The same of the shortest one.
  std::pair<std::size_t, std::string_view> find_shortest(std::string_view text) const { return find(text, false); }

 private:
  std::pair<std::size_t, std::string_view> find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace components::tokenizer
