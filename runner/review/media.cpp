#include "runner/review/media.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "runner/core/platform/files.h"
#include "runner/core/units.h"
#include "trackers/io/table_file.h"

namespace runner::review {
namespace {

using core::Node;
using store::ArtefactRow;
using trackers::Table;

constexpr std::size_t kRowsShown = 12, kColumnsShown = 12;      // on a terminal
constexpr std::size_t kLastColumns = 4;                         // label, prediction, probability and loss stand there
constexpr std::size_t kRowsOnPage = 100, kColumnsOnPage = 101;  // a confusion matrix of the largest size
constexpr const char* kLeftOut = "...";
constexpr std::int64_t kPictureBytesMax = 16'000'000;  // in a page that is sent around

std::string name_of(const ArtefactRow& artefact) {
  const Node* name = artefact.data.is_mapping() ? artefact.data.find("name") : nullptr;
  return name != nullptr ? name->scalar_text() : artefact.path;
}

std::string field(const ArtefactRow& artefact, const char* key) {
  const Node* value = artefact.data.is_mapping() ? artefact.data.find(key) : nullptr;
  return value != nullptr ? value->scalar_text() : "";
}

/// The newest of each name, in the order in which the names first came.
std::vector<const ArtefactRow*> newest(const std::vector<ArtefactRow>& artefacts, const char* kind) {
  std::vector<const ArtefactRow*> found;
  for (const ArtefactRow& artefact : artefacts) {
    if (artefact.kind != kind) continue;
    const auto same = std::find_if(found.begin(), found.end(),
                                   [&](const ArtefactRow* other) { return name_of(*other) == name_of(artefact); });
    if (same == found.end()) {
      found.push_back(&artefact);
    } else {
      *same = &artefact;
    }
  }
  return found;
}

std::string absolute(const std::string& run_dir, const ArtefactRow& artefact) {
  return (std::filesystem::path(run_dir) / artefact.path).string();
}

std::string cell_text(const Node& cell) {
  return cell.kind() == Node::Kind::kFloat ? terminal::number_text(cell.as_double())
         : cell.is_null()                  ? ""
                                           : cell.scalar_text();
}

/// At most `most` of `count` columns: the first and the last ones, with nothing for those left out between them.
std::vector<std::optional<std::size_t>> shown_columns(std::size_t count, std::size_t most) {
  std::vector<std::optional<std::size_t>> shown;
  const bool all = count <= most;
  const std::size_t first = all ? count : most - kLastColumns - 1;
  for (std::size_t i = 0; i < first; ++i) shown.emplace_back(i);
  if (all) return shown;
  shown.emplace_back();
  for (std::size_t i = count - kLastColumns; i < count; ++i) shown.emplace_back(i);
  return shown;
}

std::string beginning(const Table& table, const terminal::Terminal& terminal) {
  const auto shown = shown_columns(table.columns.size(), kColumnsShown);
  const auto indent = [](const std::optional<std::size_t>& at) { return std::string(at == 0 ? "    " : ""); };
  std::vector<terminal::Column> columns;
  for (const auto& at : shown) {
    const bool numbers = at && !table.rows.empty() && table.rows[0][*at].is_number();
    columns.push_back(
        {indent(at) + (at ? core::escape_for_terminal(table.columns[*at]) : kLeftOut), numbers && *at > 0, true});
  }
  std::vector<std::vector<terminal::Cell>> rows;
  for (std::size_t r = 0; r < std::min(table.rows.size(), kRowsShown); ++r) {
    std::vector<terminal::Cell>& row = rows.emplace_back();
    for (const auto& at : shown)
      row.push_back({indent(at) + (at ? core::escape_for_terminal(cell_text(table.rows[r][*at])) : kLeftOut)});
  }
  return terminal::table_text(columns, rows, terminal);
}

/// `16 rows`, and what of it is not shown.
std::string size_text(const Table& table) {
  std::string text = core::counted(static_cast<std::int64_t>(table.rows.size()), "row", "rows");
  if (table.columns.size() > kColumnsShown) text += " of " + std::to_string(table.columns.size()) + " columns";
  if (table.rows.size() > kRowsShown) text += ", the first " + std::to_string(kRowsShown);
  return text;
}

}  // namespace

std::string tables_text(const std::string& run_dir, const std::vector<ArtefactRow>& artefacts,
                        const terminal::Terminal& terminal) {
  std::string text;
  for (const ArtefactRow* artefact : newest(artefacts, "table")) {
    const std::optional<Table> table = trackers::read_table(absolute(run_dir, *artefact));
    text += "  " + core::escape_for_terminal(name_of(*artefact)) + " at step " + std::to_string(artefact->step) + ", " +
            (table ? size_text(*table) : "gone") + ": " + core::escape_for_terminal(artefact->path) + "\n";
    if (table) text += beginning(*table, terminal);
  }
  return text;
}

std::string pictures_text(const std::vector<ArtefactRow>& artefacts, const terminal::Terminal& terminal) {
  std::vector<std::vector<terminal::Cell>> rows;
  for (const ArtefactRow* artefact : newest(artefacts, "image")) {
    const std::string width = field(*artefact, "width");
    const Node* bytes = artefact->data.is_mapping() ? artefact->data.find("bytes") : nullptr;
    rows.push_back({{"  " + core::escape_for_terminal(name_of(*artefact))},
                    {std::to_string(artefact->step)},
                    {width.empty() ? "" : width + " x " + field(*artefact, "height")},
                    {bytes != nullptr && bytes->is_integer() ? core::format_bytes(bytes->as_integer()) : ""},
                    {core::escape_for_terminal(artefact->path)}});
  }
  if (rows.empty()) return "";
  const std::vector<terminal::Column> columns = {{"  image", false, true},
                                                 {"step", true, false},
                                                 {"pixels", false, false},
                                                 {"size", true, false},
                                                 {"file", false, false}};
  return terminal::table_text(columns, rows, terminal);
}

void add_media(const store::RunSummary& run, chart::Document& document) {
  const auto read = store::read_artefacts(run.run_dir);
  if (!read) return;
  const auto tables = newest(read.value(), "table"), pictures = newest(read.value(), "image");
  if (tables.empty() && pictures.empty()) return;
  document.heading(2, "Images and tables of " + run.id);
  const auto titled = [&document](const ArtefactRow& artefact) {
    document.heading(3, name_of(artefact) + " at step " + std::to_string(artefact.step));
  };
  for (const ArtefactRow* artefact : pictures) {
    const auto bytes = core::read_file(absolute(run.run_dir, *artefact), kPictureBytesMax);
    titled(*artefact);
    if (bytes) {
      document.picture_file(bytes.value(), field(*artefact, "caption"));
    } else {
      document.paragraph(bytes.failure().message);
    }
  }
  for (const ArtefactRow* artefact : tables) {
    const std::optional<Table> table = trackers::read_table(absolute(run.run_dir, *artefact));
    titled(*artefact);
    if (!table) {
      document.paragraph(artefact->path + " has no table");
      continue;
    }
    const auto shown = shown_columns(table->columns.size(), kColumnsOnPage);
    std::vector<std::vector<std::string>> rows(1);
    for (const auto& at : shown) rows[0].push_back(at ? table->columns[*at] : kLeftOut);
    for (std::size_t r = 0; r < std::min(table->rows.size(), kRowsOnPage); ++r) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const auto& at : shown) row.push_back(at ? cell_text(table->rows[r][*at]) : kLeftOut);
    }
    document.table(rows);
    if (table->rows.size() > kRowsOnPage) {
      document.paragraph("The first " + std::to_string(kRowsOnPage) + " of " + std::to_string(table->rows.size()) +
                         " rows; all rows: " + artefact->path);
    }
  }
}

}  // namespace runner::review
