#include "runner/hub/data_files.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/text/text.h"
#include "runner/hub/data_card.h"
#include "runner/hub/pattern.h"

namespace {

using namespace runner::hub;
using Files = std::vector<std::string>;

/// `name: split=files; split=files | name* ...`; `*`: the default one.
std::string text_of(const std::vector<DataSubset>& subsets) {
  return runner::core::joined(subsets, " | ", [](const DataSubset& subset) {
    return subset.name + (subset.is_default ? "*: " : ": ") +
           runner::core::joined(subset.splits, "; ", [](const DataSplit& split) {
             return split.name + (split.is_partial ? "~=" : "=") + runner::core::joined(split.files, ",");
           });
  });
}

std::string found(const std::string& card, const Files& files) {
  const auto configs = subsets_of_card(card);
  if (!configs) return "error:" + configs.failure().message;
  const auto subsets = data_subsets(configs.value(), files);
  return subsets ? text_of(subsets.value()) : "error:" + subsets.failure().message;
}

std::string card(const std::string& yaml) { return "---\n" + yaml + "---\n# About\n"; }

}  // namespace

TEST_CASE("patterns mean what fsspec's glob means", "[hub]") {
  struct Case {
    const char *pattern, *file;
    bool matches;
  };
  // fsspec 2026.1 `glob_translate` and the rule of `datasets` about hidden files.
  static constexpr Case cases[] = {
      {"*.csv", "a.csv", true},
      {"*.csv", "b/a.csv", false},
      {"**/*.csv", "a.csv", true},
      {"**/*.csv", "b/c/a.csv", true},
      {"data/**", "data/x/y.txt", true},
      {"data/**", "data", false},
      {"**", "a/b/c", true},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "ab", false},
      {"?.txt", "a.txt", true},
      {"?.txt", "ab.txt", false},
      {"[a-c].txt", "b.txt", true},
      {"[!a-c].txt", "b.txt", false},
      {"[-._ 0-9]x", "-x", true},
      {"[-._ 0-9]x", "5x", true},
      {"[-._ 0-9]x", "ax", false},
      {"[x", "[x", true},
      {"*", ".hidden", false},
      {".*", ".hidden", true},
      {"**", ".git/a", false},
      {"**", "__pycache__/a", false},
      {"__*/*", "__pycache__/a", true},
      {"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaa", false},
      {"train*", "train", true},
      {"data/train", "data/train", true},
      {"**/a/**/b", "a/a/a/c", false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.pattern, c.file);
    CHECK(matches(c.pattern, c.file) == c.matches);
  }
  std::string many, deep;
  for (int i = 0; i < 1000; ++i) many += "**/a*/", deep += "aa/";
  CHECK_FALSE(matches(many + "b", deep + "c"));  // in no time
}

TEST_CASE("without a card the names of files and folders say the splits", "[hub]") {
  struct Case {
    const char* name;
    Files files;
    const char* found;
  };
  const Case cases[] = {
      {"shards",
       {"README.md", "data/test-00000-of-00001.parquet", "data/train-00000-of-00002-4f.parquet",
        "data/train-00001-of-00002-4f.parquet", "data/extra-00000-of-00001.parquet"},
       "default*: train=data/train-00000-of-00002-4f.parquet,data/train-00001-of-00002-4f.parquet; "
       "test=data/test-00000-of-00001.parquet; extra=data/extra-00000-of-00001.parquet"},
      {"names of files",
       {"train.jsonl", "dev_1.jsonl", "my-test.jsonl", "other.jsonl", "README.md"},
       "default*: train=train.jsonl; validation=dev_1.jsonl; test=my-test.jsonl"},
      {"words within others do not count",
       {"constrained.jsonl", "latest.jsonl"},
       "default*: train=constrained.jsonl,latest.jsonl"},
      {"names of folders come first",
       {"training/a.csv", "valid/b.csv", "evaluation/c.csv", "test.csv"},
       "default*: train=training/a.csv; validation=valid/b.csv; test=evaluation/c.csv"},
      {"deep folders",
       {"v1/en.train/x/a.txt", "v1/en.val-2/b.txt"},
       "default*: train=v1/en.train/x/a.txt; validation=v1/en.val-2/b.txt"},
      {"all is train",
       {"b.jsonl", "a.jsonl.gz", "LICENSE", "make.py", ".gitattributes", "dataset_infos.json"},
       "default*: train=a.jsonl.gz,b.jsonl"},
      {"scripts are no splits", {"data.jsonl", "test.py", "train.md"}, "default*: train=data.jsonl"},
      {"the most frequent kind counts",
       {"train-1.json", "train-2.parquet", "train-3.parquet"},
       "default*: train=train-2.parquet,train-3.parquet"},
      {"of as many Parquet", {"train.json", "train.parquet", "train.csv"}, "default*: train=train.parquet"},
      {"lines and arrays are one kind",
       {"train-1.json", "train-2.jsonl", "train-3.jsonl"},
       "default*: train=train-1.json,train-2.jsonl,train-3.jsonl"},
      {"nothing", {"README.md", "words.py"}, "default*: "},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(found("# no front matter\n", c.files) == c.found); }
  }
}

TEST_CASE("pictures are no data that is read", "[hub]") {
  const auto subsets = data_subsets({}, {"train/1.png", "train/2.png", "train/metadata.jsonl"});
  CHECK(subsets.value().at(0).splits.at(0).kind == DataKind::kOther);
  CHECK(kind_of("a.jsonl.gz") == DataKind::kJson);
  CHECK(kind_of("a.csv.gz") == DataKind::kOther);  // no set reads it
  CHECK(kind_of("a.jsonl.zst") == DataKind::kJson);
  CHECK(kind_of("notes.md") == DataKind::kNone);
}

TEST_CASE("the card says subsets and their files", "[hub]") {
  const Files files = {"README.md",        "a.csv",       "de/train.jsonl", "en/test-1.jsonl", "en/train-1.jsonl",
                       "en/train-2.jsonl", "x/train.txt", "x/test.txt"};
  struct Case {
    const char *name, *yaml, *found;
  };
  static constexpr Case cases[] = {
      {"a text", "configs:\n- config_name: one\n  data_files: a.csv\n", "one*: train=a.csv"},
      {"a list", "configs:\n- config_name: one\n  data_files: [en/test*, ./de/*.jsonl]\n",
       "one*: train=de/train.jsonl,en/test-1.jsonl"},
      {"splits, and a default",
       "license: mit\nconfigs:\n- config_name: de\n  data_files: de/*\n- config_name: en\n  default: true\n  "
       "data_files:\n"
       "  - split: train\n    path: [en/train-1.jsonl, en/train-2*]\n  - {split: test, path: 'en/test-[0-9].jsonl'}\n",
       "de: train=de/train.jsonl | en*: train=en/train-1.jsonl,en/train-2.jsonl; test=en/test-1.jsonl"},
      {"the one that is called default",
       "configs:\n- {config_name: x, data_dir: x}\n- {config_name: default, data_files: a.csv}\n",
       "x: train=x/train.txt; test=x/test.txt | default*: train=a.csv"},
      {"below a folder",
       "configs:\n- {config_name: en, data_dir: ./en/, data_files: {train: 'train-*', test: test-1.jsonl}}\n",
       "en*: train=en/train-1.jsonl,en/train-2.jsonl; test=en/test-1.jsonl"},
      {"no default", "configs:\n- {config_name: a, data_files: a.csv}\n- {config_name: 2020, data_files: x/*}\n",
       "a: train=a.csv | 2020: train=x/test.txt,x/train.txt"},
      {"nothing about files", "dataset_info: {features: []}\n",
       "default*: train=de/train.jsonl,en/train-1.jsonl,en/train-2.jsonl; test=en/test-1.jsonl"},
      {"a file that is not there", "configs:\n- {config_name: a, data_files: b.csv}\n",
       "error: lacks \"b.csv\", which its card names for the split \"train\""},
      {"outside", "configs:\n- {config_name: a, data_files: 'https://host/a.csv'}\n",
       "error: names \"https://host/a.csv\", which is outside of the repository"},
      {"outside by a folder", "configs:\n- {config_name: a, data_dir: ../b}\n",
       "error: names \"../b\", which is outside of the repository"},
      {"no name", "configs:\n- {data_files: a.csv}\n", "error: has an entry of configs without config_name"},
      {"no list", "configs: {config_name: a}\n", "error: has configs that are not a list"},
      {"other files", "configs:\n- {config_name: a, data_files: [{split: train}]}\n",
       "error: has other data_files than it may: data_files is a path, a list of paths, or a list of {split, path}"},
      {"two defaults", "configs:\n- {config_name: a, default: true}\n- {config_name: default}\n",
       "error: has two subsets that are the default one: \"a\" and \"default\""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(found(card(c.yaml), files) == c.found); }
  }
  CHECK(found("---\r\nconfigs:\r\n- config_name: one\r\n  data_files: a.csv\r\n---\r\n", files) == "one*: train=a.csv");
  CHECK(found(card("a: [\n"), files).starts_with("error: is not YAML: "));
  CHECK(found("---\n---\n", {"a.txt"}) == "default*: train=a.txt");
}

TEST_CASE("what the Hub has converted lies by subset and split", "[hub]") {
  const Files files = {".gitattributes",
                       "de/train/0000.parquet",
                       "en/partial-train/0001.parquet",
                       "en/partial-train/0000.parquet",
                       "en/test-part0/0000.parquet",
                       "en/test-part1/0000.parquet"};
  CHECK(is_converted(files));
  CHECK(text_of(converted_subsets(files)) ==
        "de: train=de/train/0000.parquet | en: "
        "train~=en/partial-train/0000.parquet,en/partial-train/0001.parquet; "
        "test=en/test-part0/0000.parquet,en/test-part1/0000.parquet");
  CHECK(text_of(converted_subsets({"one/test/0000.parquet"})) == "one*: test=one/test/0000.parquet");
  CHECK_FALSE(is_converted({"en/train/0000.parquet", "a.jsonl"}));
  CHECK_FALSE(is_converted({"README.md"}));
}
