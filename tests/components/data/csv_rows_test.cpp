#include "components/data/csv/csv_rows.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/error.h"
#include "tests/support/folder.h"

using components::data::CsvRows;
using components::data::is_csv_path;

namespace {

struct Told {
  std::string record;
  std::int64_t line;
  bool operator==(const Told&) const = default;
};

std::string written(const tests::Folder& folder, const std::string& path, const std::string& text) {
  folder.write(path, text);
  return path;
}

std::vector<Told> rows_of(const std::string& path, const CsvRows::Place& start = {}) {
  CsvRows rows(path, start);
  std::vector<Told> told;
  while (const auto row = rows.next()) told.push_back({std::string(*row), rows.number()});
  return told;
}

std::string problem_of(const std::string& path) {
  try {
    rows_of(path);
  } catch (const runner::core::RunError& error) {
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

}  // namespace

TEST_CASE("a row of a CSV file is an object of texts", "[csv]") {
  const tests::Folder folder;
  const std::string path =
      written(folder, "a.csv", "\xEF\xBB\xBFtext,label\r\n\"one, \"\"two\"\"\nthree\",1\r\n\r\n plain , \n\"\",x\n");
  const std::vector<Told> rows = rows_of(path);
  CHECK(rows == std::vector<Told>{{R"({"text": "one, \"two\"\nthree", "label": "1"})", 2},
                                  {R"({"text": "plain", "label": null})", 5},
                                  {R"({"text": null, "label": "x"})", 6}});
  CsvRows first(path, {});
  REQUIRE(first.next());
  CHECK(rows_of(path, first.end()) == std::vector<Told>{rows[1], rows[2]});
}

TEST_CASE("the header says what delimits, and tabs do in a TSV file", "[csv]") {
  const tests::Folder folder;
  CHECK(rows_of(written(folder, "a.csv", "a;b\n1,5;2\n")) == std::vector<Told>{{R"({"a": "1,5", "b": "2"})", 2}});
  CHECK(rows_of(written(folder, "a.tsv", "a\tb\nx \"y\"\t\"y\tz\"\n")) ==
        std::vector<Told>{{R"({"a": "x \"y\"", "b": "y\tz"})", 2}});
  CHECK(is_csv_path("x/train.csv.gz"));
  CHECK(is_csv_path("train.tsv"));
  CHECK_FALSE(is_csv_path("train.csv.jsonl"));
}

TEST_CASE("what is no CSV file is an error with its line", "[csv]") {
  const tests::Folder folder;
  const auto problem = [&](const std::string& text) { return problem_of(written(folder, "b.csv", text)); };
  CHECK(problem("") == ":1: the header is missing");
  CHECK(problem("a,a\n1,2\n") == ":1: two columns are called \"a\"");
  CHECK(problem("a,\n1,2\n") == ":1: a column has no name");
  CHECK(problem("a,b\n1,2\n1,2,3\n") == ":3: the row has 3 fields, the header 2");
  CHECK(problem("a,b\n1,\"2\n3\n") == ":2: a quoted field that begins in this row is never closed");
  CHECK(problem("a,b\n1,\xff\n") == ":2: not UTF-8");
}
