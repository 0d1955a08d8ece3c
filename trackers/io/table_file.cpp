#include "trackers/io/table_file.h"

#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace trackers {
namespace {

using runner::core::Node;

constexpr std::int64_t kTableBytesMax = 64'000'000;

}  // namespace

std::optional<Table> read_table(const std::string& path) {
  const auto text = runner::core::read_file(path, kTableBytesMax);
  const auto read = text ? runner::core::parse_json(text.value()) : text.failure();
  const Node* columns = read ? read.value().find("columns") : nullptr;
  const Node* data = read ? read.value().find("data") : nullptr;
  if (columns == nullptr || data == nullptr) return std::nullopt;
  Table table;
  for (const Node& column : columns->items()) table.columns.push_back(column.scalar_text());
  for (const Node& row : data->items()) {
    if (row.items().size() != table.columns.size()) return std::nullopt;
    table.rows.push_back(row.items());
  }
  return table;
}

}  // namespace trackers
