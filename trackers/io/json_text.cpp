#include "trackers/io/json_text.h"

#include "runner/core/text/utf8.h"

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

JsonObject& JsonObject::json(const char* key, std::string_view value) {
  text_ += text_.empty() ? "\"" : ",\"";
  text_ += key;
  text_ += "\":";
  text_ += value;
  return *this;
}

JsonObject& JsonObject::text(const char* key, std::string_view value) {
  return json(key, runner::core::json_quote(value));
}

JsonObject& JsonObject::integer(const char* key, std::int64_t value) { return json(key, std::to_string(value)); }

}  // namespace trackers
