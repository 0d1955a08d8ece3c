#include "trackers/json_text.h"

namespace trackers {

using runner::core::Node;

std::string json_text(const Table& table) {
  Node columns = Node::sequence(), data = Node::sequence(), whole = Node::mapping();
  for (const std::string& column : table.columns) columns.items().push_back(Node::string(column));
  for (const auto& row : table.rows) data.items().push_back(Node::sequence(row));
  whole.set("columns", std::move(columns));
  whole.set("data", std::move(data));
  return runner::core::to_json(whole, -1);
}

}  // namespace trackers
