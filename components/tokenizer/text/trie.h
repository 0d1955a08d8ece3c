#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/text/vocabulary.h"

namespace components::tokenizer {

/// Texts with a number each, found by what a text begins with.
class Trie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0, kNone = 0xFFFFFFFF;
  static constexpr std::size_t kBytesMax = 1 << 24;  ///< of all texts; a byte takes 32 bytes of memory at most

  Trie();
  /// Of two that are the same the later one counts. An empty one is never found.
  void add(std::string_view text, std::int32_t value);

  /// Where the bytes of `text` lead to from `node`; kNone when no text goes on so.
  Node follow(std::string_view text, Node node = kRoot) const {
    for (std::size_t at = 0; node != kNone && at < text.size(); ++at) {
      const Edge* edge = find(node, static_cast<std::uint8_t>(text[at]));
      node = edge == nullptr ? kNone : edge->to;
    }
    return node;
  }

  /// Calls found(length, value) for each beginning of `text` that leads from `node` to a text, the shortest first.
  template <typename Found>
  void find_all(std::string_view text, const Found& found, Node node = kRoot) const {
    if (node == kNone) return;
    for (std::size_t at = 0; at < text.size();) {
      const Edge* edge = find(node, static_cast<std::uint8_t>(text[at++]));
      if (edge == nullptr) return;
      if (edge->value >= 0) found(at, edge->value);
      node = edge->to;
    }
  }

 private:
  struct Edge {
    Node from = kNone, to = 0;
    std::int32_t value = -1;  // of the text that ends with it
    std::uint8_t byte = 0;
  };

  std::size_t slot_of(Node from, std::uint8_t byte) const {
    return ((std::uint64_t{from} << 8 | byte) * 0x9E3779B97F4A7C15u) >> shift_;
  }
  const Edge* find(Node from, std::uint8_t byte) const {
    if (from == kRoot) return first_[byte].from == kNone ? nullptr : &first_[byte];
    for (std::size_t slot = slot_of(from, byte);; slot = (slot + 1) & (edges_.size() - 1)) {
      const Edge& edge = edges_[slot];
      if (edge.from == from && edge.byte == byte) return &edge;
      if (edge.from == kNone) return nullptr;
    }
  }
  Edge& make(Node from, std::uint8_t byte);
  void grow();

  std::array<Edge, 256> first_;  // from the root
  std::vector<Edge> edges_;      // all others, a hash table
  unsigned shift_;
  std::size_t count_ = 0;
  Node nodes_ = 1;
};

/// The tokens of a vocabulary by their text. RunError that names `file` when they have more than Trie::kBytesMax bytes.
Trie make_trie(const Vocabulary& vocabulary, const std::string& file);

}  // namespace components::tokenizer
