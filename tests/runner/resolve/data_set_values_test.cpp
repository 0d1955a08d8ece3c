#include "runner/resolve/data_set_values.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "runner/registry/registry.h"
#include "runner/resolve/hub_values.h"
#include "runner/resolve/load.h"
#include "tests/support/folder.h"
#include "tests/support/process/variables.h"

namespace {

namespace fs = std::filesystem;

using runner::core::Diagnostics;
using runner::core::Node;
using runner::core::Severity;
using runner::resolve::Recipe;

const std::string kCommit(40, 'c'), kAt = "hf://datasets/ada/words@" + kCommit;
constexpr const char* kRest =
    "model: {type: gpt, n_layer: 1, n_head: 1, n_embd: 8, vocab_size: 64, rotary_base: 500.5}\nloss: cross_entropy\n"
    "optimizer: {type: adamw, lr: 0.1}\ntraining: {max_steps: 1, micro_batch_size: 1}\n";

/// A cache with a data set.
struct Here {
  Here() {
    const fs::path data = fs::path("cache") / "datasets--ada--words";
    folder.write((data / "refs/main").string(), kCommit);
    std::string files;
    for (const char* file : {"test.jsonl", "train-1.jsonl", "train-2.jsonl"}) {
      folder.write((data / "snapshots" / kCommit / file).string(), "{\"input_ids\": [1, 2]}\n");
      files += std::string(files.empty() ? "" : ", ") + R"({"rfilename": ")" + file + "\"}";
    }
    folder.write("own/listings/datasets--ada--words/" + kCommit + ".json",
                 R"({"sha": ")" + kCommit + R"(", "siblings": [)" + files + "]}");
  }
  static std::optional<Recipe> load(const std::string& data, Diagnostics& diagnostics) {
    auto source = std::make_shared<runner::core::Source>(
        runner::core::Source{"r.yaml", "data: " + data + "\n" + kRest, runner::core::Source::Kind::kFile});
    return runner::resolve::load_recipe_text(source, {}, runner::registry::Registry::builtin(), diagnostics);
  }
  /// `line:column message | hint`.
  static std::string said(const std::string& data, Severity severity) {
    Diagnostics diagnostics;
    load(data, diagnostics);
    std::string text;
    for (const auto& one : diagnostics.all()) {
      if (one.severity == severity) text += one.location.text() + " " + one.message + " | " + one.hint + "\n";
    }
    return text;
  }

  tests::Folder folder;
  tests::Variables variables{tests::Variables::Values{{"HF_HUB_CACHE", "cache"}, {"ROUX_CACHE_DIR", "own"}}};
};

}  // namespace

TEST_CASE("a data set of the Hub becomes its files, and is recorded with their commit", "[hub][resolve]") {
  const Here here;
  Diagnostics diagnostics;
  const auto recipe = Here::load(
      "{train: {type: ids, path: hf://datasets/ada/words, split: 'train[:50%]'}, val: {type: ids, path: "
      "[hf://datasets/ada/words]}}",
      diagnostics);
  REQUIRE(recipe);
  const std::string snapshot = "cache/datasets--ada--words/snapshots/" + kCommit;
  CHECK(recipe->at("data.train.path[0]").as_string() == snapshot + "/train-1.jsonl");
  CHECK(recipe->at("data.train.path[1]").as_string() == snapshot + "/train-2.jsonl");
  CHECK(recipe->at("data.train.split").as_string() == "[:50%]");
  CHECK(recipe->at("data.val.path[0]").as_string() == snapshot + "/test.jsonl");
  const Node resolved = recipe->resolved();
  CHECK(resolved.at_path("data.train.path[1]")->as_string() == kAt + "/train-2.jsonl");
  CHECK(resolved.at_path("data.train.split")->as_string() == "[:50%]");
  CHECK(resolved.at_path("data.val.split")->is_null());

  here.folder.write("resolved.json", recipe->resolved_json());
  fs::remove_all("own");
  fs::remove("cache/datasets--ada--words/refs/main");  // the files are in the recipe
  const auto again =
      runner::resolve::load_recipe("resolved.json", {}, runner::registry::Registry::builtin(), diagnostics);
  REQUIRE(again);
  CHECK(again->hash() == recipe->hash());
  CHECK(again->resolved_json() == recipe->resolved_json());
}

TEST_CASE("a set within another is of the outer one", "[hub][resolve]") {
  const Here here;
  Diagnostics diagnostics;
  const auto recipe = Here::load(
      "{train: {type: concat, sets: [{type: ids, path: hf://datasets/ada/words, split: test}, {type: ids, path: "
      "hf://datasets/ada/words}]}}",
      diagnostics);
  REQUIRE(recipe);
  CHECK(recipe->at("data.train.sets[0].path").items().size() == 1);
  CHECK(recipe->at("data.train.sets[1].path").items().size() == 2);
}

TEST_CASE("what is taken without a name is told", "[hub][resolve]") {
  const Here here;
  CHECK(
      Here::said("{train: {type: ids, path: hf://datasets/ada/words}, val: {type: ids, path: hf://datasets/ada/words}}",
                 Severity::kNotice) ==
      "r.yaml:1:33 data.train reads the split \"train\" of " + kAt +
          ", 2 files | name another one as split\nr.yaml:1:82 data.val reads the split \"test\" of " + kAt +
          ", 1 file | name another one as split\n");
  CHECK(Here::said("{train: {type: ids, path: hf://datasets/ada/words, split: train}}", Severity::kNotice).empty());
}

TEST_CASE("a data set that is not here keeps its names", "[hub][resolve]") {
  const Here here;
  const std::string data =
      "{train: {type: ids, path: hf://datasets/ada/other, subset: en, split: 'train[:5%]'}, val: {type: ids, path: "
      "hf://datasets/ada/other, split: validation}}";
  CHECK(Here::said(data, Severity::kError).empty());
  CHECK(Here::said(data, Severity::kWarning).empty());  // nothing is said of held-out samples
  CHECK(Here::said("{train: {type: ids, path: hf://datasets/ada/other}}", Severity::kNotice) ==
        "r.yaml:1:33 hf://datasets/ada/other is not in the cache of the Hugging Face Hub | `roux run` fetches it, or "
        "`roux fetch` before\n");
  for (const char* split : {"train+test", "train[:5"}) {  // as it is written
    const std::string wrong = Here::said(
        std::string("{train: {type: ids, path: hf://datasets/ada/other, split: '") + split + "'}}", Severity::kError);
    CHECK(wrong.find("\"" + std::string(split) + "\"") != std::string::npos);
  }
  Diagnostics diagnostics;
  const auto recipe = Here::load(data, diagnostics);
  REQUIRE(recipe);
  const Node resolved = recipe->resolved();
  CHECK(resolved.at_path("data.train.path[0]")->as_string() == "hf://datasets/ada/other");
  CHECK(resolved.at_path("data.train.subset")->as_string() == "en");
  CHECK(resolved.at_path("data.train.split")->as_string() == "train[:5%]");
  CHECK(resolved.at_path("data.val.split")->as_string() == "validation");
  Node root = recipe->root;
  CHECK(runner::resolve::unlocated_data_set(root)->as_string() == "hf://datasets/ada/other");
}

TEST_CASE("a stream of a whole split is no part of the lines", "[hub][resolve]") {
  const Here here;
  const std::string begin = "{train: {type: jsonl, streaming: true, tokenizer: {type: file, path: t.json}, path: ";
  CHECK(Here::said(begin + "hf://datasets/ada/words, split: train}}", Severity::kError).empty());
  CHECK(Here::said(begin + "hf://datasets/ada/other, split: train}}", Severity::kError).empty());
  CHECK(Here::said(begin + "hf://datasets/ada/other, split: 'train[:5%]'}}", Severity::kError) !=
        "");  // lines are not counted before they are read
}

TEST_CASE("what is wrong with a data set of the Hub is said at its place", "[hub][resolve]") {
  const Here here;
  struct Case {
    const char *data, *error;
  };
  static constexpr Case cases[] = {
      {"{train: {type: ids, path: a.jsonl, split: train}}",
       "r.yaml:1:49 split \"train\" names a split of a data set of the Hub, and path names files | remove split, and "
       "name "
       "the files of the split in path\n"},
      {"{train: {type: ids, path: a.jsonl, split: 'train[:5%]'}}",
       "r.yaml:1:49 split \"train[:5%]\" names a split of a data set of the Hub, and path names files | write split: "
       "\"[:5%]\", and the files of the split in path\n"},
      {"{train: {type: ids, path: a.jsonl, subset: en}}",
       "r.yaml:1:50 subset is of a data set of the Hub, and path names files | remove subset, and name the files of "
       "the "
       "subset in path\n"},
      {"{train: {type: ids, path: hf://datasets/ada/words/train-1.jsonl, split: train}}",
       "r.yaml:1:79 split \"train\" names a split of a data set of the Hub, and path names files | remove split, and "
       "name "
       "the files of the split in path\n"},
      {"{train: {type: ids, path: hf://datasets/ada/words, split: tran}}",
       "r.yaml:1:65 hf://datasets/ada/words has no split \"tran\" | did you mean \"train\"? its splits: train, test\n"},
      {"{train: {type: ids, path: hf://datasets/ada/words, subset: en}}",
       "r.yaml:1:66 hf://datasets/ada/words has no subset \"en\" | its subsets: default\n"},
      {"{train: {type: ids, path: hf://datasets/ada/words}, dev: {type: ids, path: hf://datasets/ada/words}}",
       "r.yaml:1:82 hf://datasets/ada/words has no split dev | name one as split, or a part of one, such as "
       "\"train[95%:]\"; its splits: train, test\n"},
      {"{train: {type: ids, path: [a.jsonl, hf://datasets/ada/words]}}",
       "r.yaml:1:43 hf://datasets/ada/words names a whole data set, and stands among other files in path | read each "
       "by a "
       "set of its own, in {type: concat, sets: [...]}\n"},
      {"{train: {type: text_lines, max_seq_len: 8, path: hf://datasets/ada/words}}",
       "r.yaml:1:56 the split \"train\" of hf://datasets/ada/words has JSON files, which type text_lines does not read "
       "| "
       "use type: jsonl or ids\n"},
      {"{train: {type: tokens, dtype: uint16, vocab_size: 64, max_seq_len: 8, path: hf://datasets/ada/words}}",
       "r.yaml:1:83 hf://datasets/ada/words names a whole data set, and type tokens reads files | name a file of it: "
       "hf://datasets/ada/words/FILE\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.data) { CHECK(Here::said(c.data, Severity::kError) == c.error); }
  }
}

TEST_CASE("parts of one split of the Hub are held out like parts of a file", "[hub][resolve]") {
  const Here here;
  const auto warnings = [](const std::string& train, const std::string& val) {
    return Here::said("{train: {type: ids, path: hf://datasets/ada/words, split: '" + train +
                          "'}, val: {type: ids, path: hf://datasets/ada/words, split: '" + val + "'}}",
                      Severity::kWarning);
  };
  CHECK(warnings("train[:90%]", "train[90%:]").empty());
  CHECK(warnings("train", "test").empty());
  CHECK(warnings("train", "train[90%:]").find("data.val evaluates samples of data.train") != std::string::npos);
  CHECK(warnings("train[:100]", "train[100:]").empty());
}
