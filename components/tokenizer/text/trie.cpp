#include "components/tokenizer/text/trie.h"

#include <utility>

#include "runner/core/error.h"

namespace components::tokenizer {

Trie::Trie() : edges_(64), shift_(64 - 6) {}

void Trie::add(std::string_view text, std::int32_t value) {
  Node node = kRoot;
  for (std::size_t at = 0; at < text.size(); ++at) {
    Edge& edge = make(node, static_cast<std::uint8_t>(text[at]));
    if (at + 1 == text.size()) edge.value = value;
    node = edge.to;
  }
}

Trie::Edge& Trie::make(Node from, std::uint8_t byte) {
  if (const Edge* known = find(from, byte)) return const_cast<Edge&>(*known);
  if (from == kRoot) return first_[byte] = {from, nodes_++, -1, byte};
  if (edges_.size() < (count_ + 1) * 2) grow();
  ++count_;
  std::size_t slot = slot_of(from, byte);
  while (edges_[slot].from != kNone) slot = (slot + 1) & (edges_.size() - 1);
  return edges_[slot] = {from, nodes_++, -1, byte};
}

void Trie::grow() {
  --shift_;
  const std::vector<Edge> before = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  for (const Edge& edge : before) {
    if (edge.from == kNone) continue;
    std::size_t slot = slot_of(edge.from, edge.byte);
    while (edges_[slot].from != kNone) slot = (slot + 1) & (edges_.size() - 1);
    edges_[slot] = edge;
  }
}

Trie make_trie(const Vocabulary& vocabulary, const std::string& file) {
  Trie trie;
  std::size_t bytes = 0;
  for (std::int32_t id = 0; id < vocabulary.id_limit(); ++id) {
    const auto token = vocabulary.token_of(id);
    if (!token) continue;
    bytes += token->size();
    if (bytes > Trie::kBytesMax) {
      throw runner::core::RunError(file + ": model.vocab holds tokens of more than " + std::to_string(Trie::kBytesMax) +
                                   " bytes together");
    }
    trie.add(*token, id);
  }
  return trie;
}

}  // namespace components::tokenizer
