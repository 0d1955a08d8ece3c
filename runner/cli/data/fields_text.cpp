#include "runner/cli/data/fields_text.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr std::size_t kShownMax = 30;

}  // namespace

std::string fields_text(const std::vector<engine::FieldFigures>& fields, bool read) {
  std::vector<std::string> shown;
  std::size_t more = 0;
  for (const engine::FieldFigures& field : fields) {
    const std::int64_t records = read ? field.read : field.records - field.read;
    if (records == 0) continue;
    if (shown.size() == kShownMax) {
      ++more;
      continue;
    }
    shown.push_back(core::escape_for_terminal(field.name) + " (" + core::with_commas(records) + ")");
  }
  if (shown.empty()) return "none";
  return core::joined(shown) + (more > 0 ? ", and " + std::to_string(more) + " more" : "");
}

Node fields_node(const std::vector<engine::FieldFigures>& fields) {
  std::vector<Node> items;
  for (const engine::FieldFigures& field : fields) {
    Node item = Node::mapping();
    item.set("name", Node::string(field.name));
    item.set("records", Node::integer(field.records));
    item.set("read", Node::integer(field.read));
    items.push_back(std::move(item));
  }
  return Node::sequence(std::move(items));
}

}  // namespace runner::cli
