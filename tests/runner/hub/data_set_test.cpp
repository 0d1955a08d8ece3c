#include "runner/hub/data_set.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/text/text.h"
#include "tests/runner/hub/hub_stand_in.h"
#include "tests/support/folder.h"
#include "tests/support/process/variables.h"

namespace {

namespace fs = std::filesystem;

using namespace runner::hub;
using hub_tests::HubStandIn;

const std::string kFirst(40, 'a'), kSecond(40, 'b');
constexpr const char* kBranch = "refs%2Fconvert%2Fparquet";

/// A Hub with one data set, and an empty cache.
struct Here {
  Here() { hub.revisions[kName]["main"] = kFirst; }

  std::map<std::string, HubStandIn::File>& files(const std::string& commit = kFirst) {
    return hub.repositories[kName][commit].files;
  }
  Settings settings(bool offline = false) const { return {"cache", hub.url(), offline, "", "listings"}; }
  DataSet get(const DataRequest& request, bool offline = false) {
    return fetch(request, settings(offline),
                 {.wait = [](double) {},
                  .notes = [this](const std::string& note) { notes.push_back(note); },
                  .begins =
                      [this](const std::vector<FetchFile>& begun) {
                        for (const FetchFile& file : begun) told += file.file + " " + std::to_string(file.bytes) + "\n";
                      }});
  }
  std::string error(const DataRequest& request, bool offline = false) {
    try {
      get(request, offline);
    } catch (const DataError& failed) {
      CHECK(failed.exit_code() == 2);
      about = failed.about();
      return std::string(failed.what()) + " | " + failed.hint();
    } catch (const runner::core::RunError& failed) {
      return std::string(failed.what()) + " | " + failed.hint();
    }
    return "nothing was thrown";
  }
  static DataRequest train(const std::string& revision = "") {
    return {.name = parse_name("hf://datasets/ada/words" + revision).value(), .usual = {"train"}, .type = "jsonl"};
  }
  static std::string names(const DataSet& set) {
    return runner::core::joined(set.files, " ", [](const Located& file) { return file.pinned; });
  }

  static constexpr const char* kName = "datasets/ada/words";
  tests::Folder folder;
  tests::Variables variables{tests::Variables::Values{{"HF_TOKEN", ""}}};
  HubStandIn hub;
  std::string told;
  std::vector<std::string> notes;
  std::optional<DataError::About> about;
};

}  // namespace

TEST_CASE("the files of a split come into the cache, named before with their sizes", "[hub]") {
  Here here;
  here.files()["README.md"] = {"---\nconfigs:\n- {config_name: en, data_files: 'en/*'}\n---\n"};
  here.files()["en/train-1.jsonl"] = {"{}\n"};
  here.files()["en/train-2.jsonl"] = {std::string(5000, '\n'), true};
  here.files()["en.parquet"] = {"no part of it"};
  const DataSet set = here.get(Here::train());
  const std::string at = "hf://datasets/ada/words@" + kFirst;
  CHECK(set.name == at);
  CHECK(set.subset == "en");
  CHECK(Here::names(set) == at + "/en/train-1.jsonl " + at + "/en/train-2.jsonl");
  CHECK(fs::file_size(set.files.at(1).path) == 5000);
  CHECK(here.told == "en/train-1.jsonl 3\nen/train-2.jsonl 5000\n");
  CHECK(here.hub.downloads() == 4);  // the card, a small file, and a large one by way of a redirect

  here.hub.asked.clear();
  here.told.clear();
  CHECK(Here::names(locate(Here::train(), here.settings()).value()) == Here::names(set));
  CHECK(Here::names(here.get(Here::train(), /*offline=*/true)) == Here::names(set));
  CHECK(Here::names(here.get(Here::train("@" + kFirst))) == Here::names(set));
  CHECK(here.hub.asked.empty());
  CHECK(Here::names(here.get(Here::train())) == Here::names(set));  // asks for the branch's commit alone
  CHECK(here.hub.asked.size() == 1);
  CHECK(here.told.empty());
}

TEST_CASE("a moved branch is followed, and an unreachable Hub goes without", "[hub]") {
  Here here;
  here.files()["train.jsonl"] = {"{}\n"};
  here.get(Here::train());
  here.files(kSecond)["train.jsonl"] = {"{}\n"};
  here.files(kSecond)["train-2.jsonl"] = {"{\"a\": 1}\n"};
  here.hub.revisions[Here::kName]["main"] = kSecond;
  here.hub.fault = [](const auto&, const auto&) { return std::optional(tests::HttpReply{503, "busy"}); };
  CHECK(here.get(Here::train()).files.size() == 1);
  CHECK(here.notes.size() == 1);
  CHECK(here.notes.at(0).ends_with("; using hf://datasets/ada/words@" + kFirst + " from the cache"));
  here.hub.fault = nullptr;
  CHECK(here.get(Here::train()).files.size() == 2);
  CHECK(locate(Here::train(), here.settings())->files.size() == 2);
}

TEST_CASE("without all files offline is an error", "[hub]") {
  Here here;
  here.files()["train.jsonl"] = {"{}\n"};
  here.files()["test.jsonl"] = {"{}\n"};
  CHECK_FALSE(locate(Here::train(), here.settings()));
  CHECK(
      here.error(Here::train(), /*offline=*/true) ==
      "hf://datasets/ada/words is not whole in the cache cache/datasets--ada--words, and HF_HUB_OFFLINE is set | unset "
      "HF_HUB_OFFLINE, or copy the cache of a machine that has it");
  here.get(Here::train());
  DataRequest test = Here::train();
  test.split = "test";
  CHECK_FALSE(locate(test, here.settings()));
  CHECK(here.error(test, /*offline=*/true).starts_with("hf://datasets/ada/words is not whole in the cache"));
  DataRequest all = Here::train();
  all.usual.clear();
  CHECK(here.get(all).splits == std::vector<std::string>{"train", "test"});
}

TEST_CASE("what a data set cannot meet says what it has", "[hub]") {
  Here here;
  here.files()["README.md"] = {
      "---\nconfigs:\n- {config_name: en, data_files: [{split: train, path: a.jsonl}, {split: test_sft, path: "
      "b.jsonl}]}\n"
      "- {config_name: tables, data_files: '*.csv'}\n- {config_name: notes, data_files: '*.txt'}\n---\n"};
  for (const char* file : {"a.jsonl", "b.jsonl", "1.csv", "2.csv", "n.txt"}) here.files()[file] = {"x\n"};
  struct Case {
    const char *subset, *split, *type;
    DataError::About about;
    const char* error;
  };
  using About = DataError::About;
  static constexpr Case cases[] = {
      {"", "", "jsonl", About::kPath,
       "hf://datasets/ada/words has 3 subsets, and none is named | name one as subset; its subsets: en, tables, notes"},
      {"ne", "", "jsonl", About::kSubset,
       "hf://datasets/ada/words has no subset \"ne\" | did you mean \"en\"? its subsets: en, tables, notes"},
      {"en", "tset_sft", "jsonl", About::kSplit,
       "the subset \"en\" of hf://datasets/ada/words has no split \"tset_sft\" | did you mean \"test_sft\"? its "
       "splits: "
       "train, test_sft"},
      {"tables", "", "ids", About::kPath,
       "the split \"train\" of hf://datasets/ada/words has CSV files, which type ids does not read | use type: "
       "csv_table or jsonl, or hf://datasets/ada/words@refs/convert/parquet, what the Hub has converted to Parquet"},
      {"tables", "", "csv_table", About::kPath,
       "the split \"train\" of hf://datasets/ada/words has 2 files, and type csv_table reads one | name one of them, "
       "such "
       "as hf://datasets/ada/words/1.csv"},
      {"en", "", "csv_table", About::kPath,
       "the split \"train\" of hf://datasets/ada/words has JSON files, which type csv_table does not read | use type: "
       "jsonl or ids"},
      {"notes", "", "ids", About::kPath,
       "the split \"train\" of hf://datasets/ada/words has text files, which type ids does not read | use type: text "
       "or "
       "text_lines, or hf://datasets/ada/words@refs/convert/parquet, what the Hub has converted to Parquet"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.error);
    DataRequest request = Here::train();
    request.subset = c.subset, request.split = c.split, request.type = c.type;
    CHECK(here.error(request) == c.error);
    CHECK(here.about == c.about);
  }
  DataRequest held_out = Here::train();
  held_out.subset = "en";
  held_out.usual = {"validation", "test"};
  CHECK(
      here.error(held_out) ==
      "the subset \"en\" of hf://datasets/ada/words has no split validation or test | name one as split, or a part of "
      "one, such as \"train[95%:]\"; its splits: train, test_sft");
  CHECK(here.hub.downloads() == 1);  // the card
}

TEST_CASE("what only a script reads, or roux does not, is read as the Hub converted it", "[hub]") {
  Here here;
  here.files()["words.py"] = {"import datasets"};
  here.files()["data/raw.jsonl"] = {"{}\n"};
  CHECK(Here::names(here.get(Here::train())) == "hf://datasets/ada/words@" + kFirst + "/data/raw.jsonl");
  here.hub.asked.clear();
  CHECK(locate(Here::train(), here.settings()));  // it is known that nothing is converted

  fs::remove_all("listings");
  here.hub.revisions[Here::kName][kBranch] = kSecond;
  here.files(kSecond)["default/partial-train/0000.parquet"] = {"PAR1"};
  const DataSet set = here.get(Here::train());
  CHECK(Here::names(set) == "hf://datasets/ada/words@" + kSecond + "/default/partial-train/0000.parquet");
  CHECK(set.is_partial);
  here.hub.asked.clear();
  CHECK(Here::names(locate(Here::train(), here.settings()).value()) == Here::names(set));
  CHECK(Here::names(here.get(Here::train("@refs/convert/parquet"))) == Here::names(set));

  here.files() = {{"train/1.png", {"p"}}};
  fs::remove_all("listings");
  CHECK(Here::names(here.get(Here::train())) == Here::names(set));
  here.hub.revisions[Here::kName].erase(kBranch);
  fs::remove_all("listings");
  CHECK(here.error(Here::train()) ==
        "hf://datasets/ada/words has no files that roux reads (JSON, Parquet, Arrow, CSV, text) | the Hub has not "
        "converted it either; its files: train/1.png");
  CHECK(here.error(Here::train("@" + kFirst)) ==
        "hf://datasets/ada/words@" + kFirst +
            " has no files that roux reads (JSON, Parquet, Arrow, CSV, text) | write "
            "hf://datasets/ada/words@refs/convert/parquet for what the Hub has converted to Parquet");
}

TEST_CASE("a card that cannot be read is an error, and one beside it counts more", "[hub]") {
  Here here;
  here.files()["README.md"] = {"---\nconfigs: 3\n---\n"};
  here.files()["a.jsonl"] = {"{}\n"};
  CHECK(here.error(Here::train()) ==
        "the card README.md of hf://datasets/ada/words has configs that are not a list | name files of it in path: "
        "hf://datasets/OWNER/NAME/FILE");
  here.files()[".huggingface.yaml"] = {"configs:\n- {config_name: a, data_files: a.jsonl}\n"};
  CHECK(here.get(Here::train()).subset == "a");
}
