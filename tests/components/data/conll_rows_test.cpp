#include "components/data/csv/conll_rows.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/error.h"
#include "tests/support/folder.h"

using components::data::ConllRows;

namespace {

struct Told {
  std::string record;
  std::int64_t line;
  bool operator==(const Told&) const = default;
};

std::vector<Told> sentences_of(const std::string& text, const ConllRows::Place& start = {}) {
  const tests::Folder folder;
  folder.write("a.conll", text);
  ConllRows rows("a.conll", start);
  std::vector<Told> told;
  while (const auto record = rows.next()) told.push_back({std::string(*record), rows.number()});
  return told;
}

std::string problem_of(const std::string& text) {
  try {
    sentences_of(text);
  } catch (const runner::core::RunError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a sentence of a file in columns is a record", "[conll]") {
  const std::string text =
      "\xEF\xBB\xBF-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\r\n\n\n-DOCSTART- -X- -X- O\n"
      "\nPeter  NNP B-NP B-PER \n";
  const std::vector<Told> told = sentences_of(text);
  CHECK(told ==
        std::vector<Told>{
            {R"({"tokens": ["EU", "rejects"], "pos_tags": ["NNP", "VBZ"], "chunk_tags": ["B-NP", "B-VP"], )"
             R"("ner_tags": ["B-ORG", "O"]})",
             3},
            {R"({"tokens": ["Peter"], "pos_tags": ["NNP"], "chunk_tags": ["B-NP"], "ner_tags": ["B-PER"]})", 9}});
  const tests::Folder folder;
  folder.write("a.conll", text);
  ConllRows rows("a.conll", {});
  REQUIRE(rows.next());
  CHECK(sentences_of(text, rows.end()) == std::vector<Told>{told[1]});
}

TEST_CASE("columns are apart by tabs or blanks, and lines with # in front of a sentence are none", "[conll]") {
  CHECK(sentences_of("# id 5 domain=train\nNew York\tB-LOC\n#\tO\n\n#\tO\n") ==
        std::vector<Told>{{R"({"tokens": ["New York", "#"], "tags": ["B-LOC", "O"]})", 2},
                          {R"({"tokens": ["#"], "tags": ["O"]})", 5}});
  CHECK(sentences_of("a _ x O\n\nb _ y O").size() == 2);
  CHECK(sentences_of("a x O\n") == std::vector<Told>{{R"({"tokens": ["a"], "column2": ["x"], "tags": ["O"]})", 1}});
  CHECK(sentences_of("\n \n").empty());
}

TEST_CASE("a sentence of CoNLL-U has words and their tags, without ranges and empty nodes", "[conll]") {
  CHECK(sentences_of("# text = Im Haus\n1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_\n1\tIn\tin\tADP\tAPPR\t_\t3\tcase\t_\t_\n"
                     "2\tdem\tder\tDET\tART\t_\t3\tdet\t_\t_\n2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n") ==
        std::vector<Told>{{R"({"tokens": ["In", "dem"], "lemmas": ["in", "der"], "upos": ["ADP", "DET"], )"
                           R"("xpos": ["APPR", "ART"], "deprels": ["case", "det"]})",
                           2}});
}

TEST_CASE("what is no file in columns is an error with its line", "[conll]") {
  CHECK(problem_of("a B\n\nb\n") == "a.conll:3: the line has 1 column, and the first one of the file 2");
  CHECK(problem_of("word\nword\n") == "a.conll:1: the line has one column, and a word with its tag is expected");
  CHECK(problem_of("a\tB\n\tO\n") == "a.conll:2: column 1 is empty");
  CHECK(problem_of("a O\n\xFF O\n") == "a.conll:2: the line is not UTF-8");
}

TEST_CASE("a file in columns is known by its name, or by its first line", "[conll]") {
  const tests::Folder folder;
  const auto has_columns = [&](const std::string& text) {
    folder.write("train.txt", text);
    return components::data::has_columns("train.txt");
  };
  CHECK(has_columns("\n\nEU B-ORG\n"));
  CHECK_FALSE(has_columns(R"({"tokens": ["a"], "tags": ["O"]})"));
  CHECK_FALSE(has_columns(R"([ {"tokens": []}])"));
  CHECK_FALSE(has_columns("word\n"));
  CHECK_FALSE(has_columns(""));
  CHECK(components::data::is_conll_path("x/train.conll"));
  CHECK(components::data::is_conll_path("dev.conllu.gz"));
  CHECK_FALSE(components::data::is_conll_path("conll.txt"));
}
