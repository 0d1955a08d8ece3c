#include "runner/resolve/rules/streamed_set.h"

#include <algorithm>

namespace runner::resolve {

using core::Node;

const Node* streaming_of(const Node& set) {
  const Node* type = set.is_mapping() ? set.find("type") : nullptr;
  if (type == nullptr || !type->is_string()) return nullptr;
  if (type->as_string() == "jsonl") {
    const Node* streaming = set.find("streaming");
    return streaming != nullptr && streaming->is_bool() && streaming->as_bool() ? streaming : nullptr;
  }
  const Node* sets = type->as_string() == "concat" ? set.find("sets") : nullptr;
  if (sets == nullptr || !sets->is_sequence() || sets->items().empty()) return nullptr;
  const auto is_streamed = [](const Node& one) { return streaming_of(one) != nullptr; };
  const bool all = std::all_of(sets->items().begin(), sets->items().end(), is_streamed);
  return all ? streaming_of(sets->items().front()) : nullptr;
}

}  // namespace runner::resolve
