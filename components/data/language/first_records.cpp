#include "components/data/language/first_records.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "components/data/record/record_source.h"
#include "components/data/text_files.h"
#include "runner/core/json.h"

namespace components::data {

using runner::core::Node;

std::optional<std::vector<Node>> first_records(const std::vector<std::string>& paths, std::int64_t count,
                                               runner::core::Diagnostics& diagnostics) {
  const Node block;
  const auto files = find_text_files(paths, {}, FileKind::kRecords, Inputs{"train", block, diagnostics});
  if (diagnostics.has_errors()) return std::nullopt;
  std::vector<Node> records;
  for (const TextFile& file : files) {
    const auto source = RecordSource::open(file.path, {}, {.text_field = "", .arrays = true, .words = true});
    while (std::ssize(records) < count) {
      const auto line = source->next();
      if (!line) break;
      if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
      auto record = runner::core::parse_json(std::string(*line));
      const std::string place = file.path + ":" + std::to_string(source->number());
      if (!record) {
        diagnostics.error({}, place + ": " + record.failure().message, record.failure().hint);
      } else if (!record.value().is_mapping()) {
        diagnostics.error({}, place + ": not an object", "write {\"text\": \"...\"} and its like in each line");
      }
      if (diagnostics.has_errors()) return std::nullopt;
      records.push_back(std::move(record.value()));
    }
  }
  if (!records.empty()) return records;
  diagnostics.error({}, (paths.empty() ? "the data" : paths.front()) + std::string(" has no records"),
                    "name a file of records, one in each line");
  return std::nullopt;
}

}  // namespace components::data
