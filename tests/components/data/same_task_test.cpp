#include <catch2/catch.hpp>

#include "tests/components/data/building.h"
#include "tests/support/folder.h"

TEST_CASE("a set that the model of the training set cannot take is refused", "[data]") {
  const tests::Folder folder;
  folder.write("corpus.txt", "0123456789");
  folder.write("t.csv", "a,b,y\n1,2,3\n2,3,4\n");
  const std::string hint =
      "  hint: one model is trained on data.train and evaluated on data.val: give both the same shape\n";
  struct Case {
    const char* name;
    std::string train;
    std::string val;
    std::string messages;
  };
  const Case cases[] = {
      {"longer windows", "{type: text, path: corpus.txt, max_seq_len: 4}",
       "{type: text, path: corpus.txt, max_seq_len: 5}",
       "data.yaml:1:45: error: max_seq_len of data.val is 5, but the model is made for the 4 of data.train\n"
       "  hint: use max_seq_len: 4 or less\n"},
      {"shorter windows", "{type: text, path: corpus.txt, max_seq_len: 4}",
       "{type: text, path: corpus.txt, max_seq_len: 3}", ""},
      {"more inputs", "{type: synthetic, in_features: 2}", "{type: synthetic, in_features: 3}",
       "data.yaml:1:1: error: input of data.val is float32 [batch, 3], and of data.train float32 [batch, 2]\n" + hint},
      {"another task", "{type: synthetic, task: spirals}", "{type: synthetic, in_features: 2}",
       "data.yaml:1:1: error: target of data.val is float32 [batch, 1], and of data.train int64 [batch]\n" + hint},
      {"more classes", "{type: synthetic, task: spirals}", "{type: synthetic, task: spirals, num_classes: 4}",
       "data.yaml:1:1: error: data.val has 4 classes, and data.train has 3\n"},
      {"a table beside made-up data", "{type: synthetic, in_features: 2}", "{type: csv_table, path: t.csv, target: y}",
       ""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto train = tests::good_data(c.train);
      CHECK(tests::build_data(c.val, {"val", train.get()}).messages == c.messages);
    }
  }
}
