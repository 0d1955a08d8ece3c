#include "tests/fuzz/data_files.h"

#include <cstdlib>
#include <filesystem>

#include "components/data/csv/conll_rows.h"
#include "components/data/csv/csv_file.h"
#include "components/data/csv/csv_rows.h"
#include "components/data/label/squad_file.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace tests {
namespace {

namespace data = components::data;
using runner::core::RunError;

std::string& folder() {
  static std::string path;
  return path;
}

void check_record(std::string_view record) {
  if (!runner::core::parse_json(record)) std::abort();
}

template <typename Rows>
void read_rows(const std::string& path) {
  try {
    Rows rows(path, {});
    while (const auto record = rows.next()) check_record(*record);
  } catch (const RunError&) {
  }
}

void read_table(const std::string& path, const data::CsvOptions& options) {
  runner::core::Diagnostics diagnostics;
  data::CsvFile file;
  {
    data::RecordErrors errors(diagnostics, {}, path);
    file = data::read_csv(path, options, errors);
  }
  if (diagnostics.has_errors()) return;
  for (const data::CsvRow& row : file.rows) {
    if (row.fields.size() != file.columns.size()) std::abort();
  }
}

}  // namespace

std::vector<std::string> data_corpus() {
  return {
      "text,label\n\"a, \"\"quoted\"\" one\",yes\nplain,no\n",
      "a;b\n1,5;2\n\n3;\"x\ny\"\n",
      "a\tb\n1\t2\n",
      "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n-DOCSTART- -X- -X- O\n\nPeter NNP B-NP B-PER\n",
      "# text = They "
      "buy\n1\tThey\tthey\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n2\tbuy\tbuy\tVERB\tVBP\t_\t0\t"
      "root\t_\t_\n\n",
      R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "Ada was here.", "qas": [{"id": "1",
              "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}, {"id": "2", "question": "When?",
              "is_impossible": true, "answers": []}]}]}]})"};
}

void read_data_file(const std::string& text) {
  if (folder().empty()) {
    folder() = (std::filesystem::temp_directory_path() / "roux-fuzz-XXXXXX").string();
    if (::mkdtemp(folder().data()) == nullptr) std::abort();
  }
  const std::string path = folder() + "/a.csv";
  runner::core::write_file_atomic(path, text).value();
  read_rows<data::CsvRows>(path);
  read_rows<data::ConllRows>(path);
  read_table(path, {});
  read_table(path, {.delimiter = ';', .header = false, .decimal = ',', .encoding = data::CsvEncoding::kLatin1});
  try {
    if (data::is_squad_file(path)) {
      for (const std::string& record : data::squad_records(path)) check_record(record);
    }
    data::has_columns(path);
  } catch (const RunError&) {
  }
}

void remove_data_folder() {
  std::error_code ignored;
  if (!folder().empty()) std::filesystem::remove_all(folder(), ignored);
}

}  // namespace tests
