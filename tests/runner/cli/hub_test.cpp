#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runner/net/digest.h"
#include "tests/runner/hub/hub_stand_in.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"
#include "tests/support/process/process.h"

namespace {

namespace fs = std::filesystem;

const std::string kFirst(40, 'a'), kSecond(40, 'b');

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The program, and a Hub with a model and its data.
struct Here {
  Here() {
    const fs::path model = fs::path(tests::source_dir()) / "tests/parity/models/llama-grouped";
    auto& files = hub.repositories["ada/tiny"][kFirst].files;
    files["config.json"] = {content(model / "config.json")};
    files["model.safetensors"] = {content(model / "model.safetensors"), true};
    files["tokenizer.json"] = {content(fs::path(tests::source_dir()) / "recipes/examples/data/tokenizer.json")};
    hub.revisions["ada/tiny"]["main"] = kFirst;
    hub.repositories["datasets/ada/ids"][kFirst].files["train.jsonl"] = {content(model / "ids.jsonl")};
    hub.revisions["datasets/ada/ids"]["main"] = kFirst;
    folder.write("r.yaml",
                 "recipe_version: 1\nrun_name: t\ninit_from: hf://ada/tiny\n"
                 "data: {train: {type: ids, path: hf://datasets/ada/ids/train.jsonl}}\n"
                 "optimizer: {type: adamw, lr: 0.001}\ntraining: {max_steps: 2, micro_batch_size: 5}\n");
  }

  int roux(std::vector<std::string> words) {
    words.insert(words.begin(), tests::roux_program());
    tests::Process process(words, {{"HF_ENDPOINT", hub.url()},
                                   {"HF_HUB_CACHE", "cache"},
                                   {"ROUX_CACHE_DIR", "own"},
                                   {"HF_TOKEN", "hf_secret"},
                                   {"HF_HUB_OFFLINE", offline ? "1" : "0"},
                                   {"HOME", fs::current_path().string()}});
    const int status = process.wait();
    said = process.output();
    return status;
  }
  bool says(const std::string& text) const { return said.find(text) != std::string::npos; }
  /// resolved.json of the newest run.
  std::string recorded() const {
    std::vector<std::string> runs;
    for (const auto& run : fs::directory_iterator("runs")) runs.push_back(run.path().string());
    return content(fs::path(*std::max_element(runs.begin(), runs.end())) / "resolved.json");
  }

  tests::Folder folder;
  hub_tests::HubStandIn hub;
  bool offline = false;
  std::string said;
};

}  // namespace

TEST_CASE("validate opens no connection, and plan fetches only the headers of weights", "[hub][cli]") {
  Here here;
  CHECK(here.roux({"validate", "r.yaml"}) == 2);
  CHECK(here.says("hf://ada/tiny is not in the cache of the Hugging Face Hub"));
  CHECK(here.hub.asked.empty());
  CHECK(here.roux({"plan", "r.yaml"}) == 0);
  CHECK(here.says("init_from  15 of 15 tensors"));
  CHECK(here.says(" from hf://ada/tiny@" + kFirst + "/model.safetensors"));
  CHECK(std::all_of(here.hub.asked.begin(), here.hub.asked.end(), [](const auto& one) {
    return one.path.find("model.safetensors") == std::string::npos || one.range.starts_with("bytes=0-7") ||
           one.range.starts_with("bytes=8-");
  }));
  CHECK_FALSE(fs::exists("cache/models--ada--tiny/snapshots/" + kFirst + "/model.safetensors"));
  here.folder.write("other.yaml",
                    "extends: r.yaml\nmodel: {type: gpt, n_layer: 1, n_head: 1, n_embd: 8, vocab_size: 64}\n"
                    "loss: cross_entropy\n");
  CHECK(here.roux({"plan", "other.yaml"}) == 2);
  CHECK(here.says("error: init_from: hf://ada/tiny@" + kFirst + "/model.safetensors lacks "));
  here.hub.asked.clear();
  CHECK(here.roux({"validate", "r.yaml"}) == 0);
  CHECK(here.hub.asked.empty());
}

TEST_CASE("plan goes without weights where only whole files are sent", "[hub][cli]") {
  Here here;
  const auto goes_without = [&] {
    return here.roux({"plan", "r.yaml"}) == 0 &&
           here.says("the weights of hf://ada/tiny@" + kFirst + " are not here yet");
  };
  here.hub.fault = [&](const auto& asked, const auto&) -> std::optional<tests::HttpReply> {
    const auto& files = here.hub.repositories.at("ada/tiny").at(kFirst).files;
    return asked.of_storage ? std::make_optional(tests::HttpReply{200, files.at("model.safetensors").content})
                            : std::nullopt;
  };
  CHECK(goes_without());
  here.hub.fault = [](const auto& asked, const auto&) -> std::optional<tests::HttpReply> {
    return asked.of_storage ? std::make_optional(tests::HttpReply{503, "busy"}) : std::nullopt;
  };
  CHECK(here.roux({"plan", "r.yaml"}) == 0);
  CHECK(here.says("the weights are not here, so they are not compared with the model: "));
  CHECK(here.says("503"));
  here.hub.fault = [](const auto& asked, const auto&) -> std::optional<tests::HttpReply> {
    return asked.of_storage ? std::make_optional(tests::HttpReply{404, "gone"}) : std::nullopt;
  };
  CHECK(here.roux({"plan", "r.yaml"}) == 0);
  CHECK(here.says("the weights are not here, so they are not compared with the model: "));
  here.hub.fault = nullptr;
  here.offline = true;
  CHECK(goes_without());
}

TEST_CASE("plan reads the headers of shards", "[hub][cli]") {
  Here here;
  const fs::path model = fs::path(tests::source_dir()) / "tests/parity/models/llama-version4-sharded";
  auto& files = here.hub.repositories["ada/tiny"][kFirst].files;
  files.erase("model.safetensors");
  for (const auto& file : fs::directory_iterator(model)) {
    const std::string name = file.path().filename().string();
    if (name != "expected.json") files[name] = {content(file.path()), name.ends_with(".safetensors")};
  }
  CHECK(here.roux({"plan", "r.yaml"}) == 0);
  CHECK(here.says(" from hf://ada/tiny@" + kFirst + "/model.safetensors.index.json"));
}

TEST_CASE("estimate-memory fetches a configuration, and of a type that roux lacks the headers of weights",
          "[hub][cli]") {
  Here here;
  const auto asked_weights = [&here] {
    return std::any_of(here.hub.asked.begin(), here.hub.asked.end(),
                       [](const auto& one) { return one.path.find("model.safetensors") != std::string::npos; });
  };
  CHECK(here.roux({"estimate-memory", "hf://ada/tiny", "--dtypes", "float32"}) == 0);
  CHECK(here.says("hf://ada/tiny: llama, LlamaForCausalLM, "));
  CHECK_FALSE(asked_weights());
  auto& files = here.hub.repositories["ada/tiny"][kFirst].files;
  files["config.json"] = {R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"]})"};
  fs::remove_all("cache");
  CHECK(here.roux({"estimate-memory", "hf://ada/tiny", "--dtypes", "float32"}) == 0);
  CHECK(here.says("model_type is \"mamba\", whose classes roux does not know: the sizes are those of the tensors in"));
  CHECK(asked_weights());
  CHECK(std::all_of(here.hub.asked.begin(), here.hub.asked.end(), [](const auto& one) {
    return one.path.find("model.safetensors") == std::string::npos || one.range.starts_with("bytes=0-7") ||
           one.range.starts_with("bytes=8-");
  }));
  CHECK_FALSE(fs::exists("cache/models--ada--tiny/snapshots/" + kFirst + "/model.safetensors"));
  files.erase("model.safetensors");
  fs::remove_all("cache");
  CHECK(here.roux({"estimate-memory", "hf://ada/tiny"}) == 2);
  CHECK(here.says("error: the headers of the weights of hf://ada/tiny cannot be read"));
  CHECK(here.says("hint: name a model that has safetensors"));
}

TEST_CASE("plan of a model of the Hub that does not fit names what would, and asks the Hub no more", "[hub][cli]") {
  Here here;
  REQUIRE(here.roux({"plan", "r.yaml"}) == 0);
  here.hub.asked.clear();
  REQUIRE(here.roux({"plan", "r.yaml"}) == 0);
  const std::size_t asked = here.hub.asked.size();
  here.hub.asked.clear();
  CHECK(here.roux({"plan", "r.yaml", "--set", "training.max_memory=150KB"}) == 2);
  CHECK(here.says("notice: it fits with --set "));
  CHECK(here.hub.asked.size() == asked);
}

TEST_CASE("run fetches what its recipe names and records the commit", "[hub][cli]") {
  Here here;
  REQUIRE(here.roux({"run", "r.yaml"}) == 0);
  CHECK(here.says("initial weights: 15 of 15 tensors"));
  CHECK_FALSE(here.says("hf_secret"));
  CHECK(here.recorded().find("\"hf://ada/tiny@" + kFirst + "\"") != std::string::npos);
  CHECK(here.recorded().find("\"hf://datasets/ada/ids@" + kFirst + "/train.jsonl\"") != std::string::npos);
  CHECK(here.recorded().find("snapshots") == std::string::npos);

  here.hub.repositories["datasets/ada/ids"][kSecond] = here.hub.repositories["datasets/ada/ids"][kFirst];
  here.hub.repositories["datasets/ada/ids"][kSecond].files.at("train.jsonl").content += "{\"input_ids\": [1, 2]}\n";
  here.hub.revisions["datasets/ada/ids"]["main"] = kSecond;
  here.hub.asked.clear();
  REQUIRE(here.roux({"resume", "t", "--checkpoint", "last", "--set", "training.max_steps=3", "--allow-change",
                     "training.max_steps"}) == 0);
  CHECK(here.hub.asked.empty());  // the recorded commits are in the cache
  CHECK(here.roux({"run", "r.yaml", "--checkpoint", "last", "--set", "training.max_steps=4", "--allow-change",
                   "training.max_steps"}) == 2);
  CHECK(here.says("hf://datasets/ada/ids@" + kSecond + "/train.jsonl"));  // the branch was moved meanwhile

  REQUIRE(here.roux({"export", "t", "out"}) == 0);
  CHECK(fs::exists("out/tokenizer.json"));
}

TEST_CASE("fetch prints what is where, and offline it is enough", "[hub][cli]") {
  Here here;
  REQUIRE(here.roux({"fetch", "r.yaml"}) == 0);
  CHECK(here.said == "hf://ada/tiny@" + kFirst + "  cache/models--ada--tiny/snapshots/" + kFirst +
                         "\nhf://datasets/ada/ids@" + kFirst + "/train.jsonl  cache/datasets--ada--ids/snapshots/" +
                         kFirst + "/train.jsonl\n");
  here.hub.asked.clear();
  here.offline = true;
  CHECK(here.roux({"fetch", "hf://ada/tiny"}) == 0);
  CHECK(here.roux({"tokenizer", "info", "hf://ada/tiny"}) == 0);
  CHECK(here.says("vocabulary"));
  CHECK(here.roux({"plan", "r.yaml"}) == 0);
  CHECK(here.says("init_from  15 of 15 tensors"));
  CHECK(here.roux({"fetch", "hf://ada/other"}) == 1);
  CHECK(here.says("error: hf://ada/other is not whole in the cache"));
  CHECK(here.hub.asked.empty());
}

TEST_CASE("a name that the Hub does not know is an error at its place", "[hub][cli]") {
  Here here;
  CHECK(here.roux({"run", "r.yaml", "--set", "init_from=hf://ada/tni"}) == 2);
  CHECK(here.says("--set init_from=hf://ada/tni: error: "));
  CHECK(here.says("has no model ada/tni"));
  CHECK(here.roux({"fetch", "hf://ada/tiny", "--set", "a=b"}) == 2);
  CHECK(here.says("error: hf://ada/tiny is not a recipe, so nothing in it can be changed"));
  CHECK(here.roux({"generate", "hf://ada/tiny/config.json", "--prompt", "a"}) == 2);
  CHECK(here.says("hint: write hf://ada/tiny\n"));
  CHECK(here.roux({"generate", "hf://ada/tni", "--prompt", "a"}) == 2);
  CHECK(here.says("has no model ada/tni"));
}

TEST_CASE("files of other servers are fetched by URL and checksum, and recorded so", "[hub][cli]") {
  Here here;
  const fs::path model = fs::path(tests::source_dir()) / "tests/parity/models/llama-grouped";
  const std::map<std::string, std::string> files = {{"/ids.jsonl", content(model / "ids.jsonl")},
                                                    {"/model.safetensors", content(model / "model.safetensors")},
                                                    {"/config.json", content(model / "config.json")}};
  here.hub.fault = [&files](const auto& asked, const auto&) -> std::optional<tests::HttpReply> {
    const auto file = files.find(asked.path);
    return file == files.end() ? std::nullopt : std::make_optional(hub_tests::part_of(file->second, asked.range));
  };
  const auto name = [&](const std::string& path) {
    return here.hub.url() + path + "#sha256=" + runner::net::sha256(files.at(path));
  };
  here.folder.write("r.yaml", "recipe_version: 1\nrun_name: t\ninit_from: " + name("/model.safetensors") +
                                  "\nmodel: {type: transformers, config: \"" + name("/config.json") +
                                  "\"}\nloss: cross_entropy\ndata: {train: {type: ids, path: \"" + name("/ids.jsonl") +
                                  "\"}}\noptimizer: {type: adamw, lr: 0.001}\n"
                                  "training: {max_steps: 2, micro_batch_size: 5}\n");
  CHECK(here.roux({"plan", "r.yaml"}) == 0);
  CHECK(here.says("init_from  15 of 15 tensors"));
  CHECK(here.says(" from " + here.hub.url() + "/model.safetensors"));
  CHECK(here.hub.asked.size() == 4);  // the configuration, the data, and twice a part of the weights
  CHECK(here.roux({"validate", "r.yaml"}) == 0);
  CHECK(here.says("notice: " + here.hub.url() + "/model.safetensors is not in the cache"));
  CHECK(here.hub.asked.size() == 4);
  REQUIRE(here.roux({"run", "r.yaml"}) == 0);
  CHECK(here.says("initial weights: 15 of 15 tensors"));
  CHECK(here.hub.asked.size() == 5);
  for (const auto& one : here.hub.asked) CHECK(one.authorization.empty());
  CHECK(here.recorded().find("\"" + name("/ids.jsonl") + "\"") != std::string::npos);
  CHECK(here.recorded().find("\"" + name("/model.safetensors") + "\"") != std::string::npos);
  CHECK(here.recorded().find("own/files") == std::string::npos);

  here.offline = true;
  REQUIRE(here.roux({"fetch", "r.yaml"}) == 0);
  CHECK(here.says(name("/ids.jsonl") + "  own/files/snapshots/" + runner::net::sha256(files.at("/ids.jsonl")) +
                  "/ids.jsonl\n"));
  CHECK(here.roux({"fetch", name("/config.json")}) == 0);
  CHECK(here.roux({"resume", "t", "--checkpoint", "last", "--set", "training.max_steps=3", "--allow-change",
                   "training.max_steps"}) == 0);
  CHECK(here.hub.asked.size() == 5);
}

TEST_CASE("a URL without a right checksum is an error at its place", "[hub][cli]") {
  Here here;
  CHECK(here.roux({"validate", "r.yaml", "--set", "data.train.path=https://host/a.jsonl"}) == 2);
  CHECK(here.says(
      "--set data.train.path=https://host/a.jsonl: error: \"https://host/a.jsonl\" cannot be fetched: it has no "
      "checksum\n  hint: write https://host/a.jsonl#sha256=HEX; `sha256sum FILE` prints HEX of a file that you "
      "have\n"));
  CHECK(here.roux({"validate", "r.yaml", "--set",
                   "init_from=https://host/model.safetensors.index.json#sha256=" + std::string(64, '0')}) == 2);
  CHECK(here.says(
      "https://host/model.safetensors.index.json is an index of shards, and says nothing of their checksums\n  hint: "
      "name weights in one file, or a model of the Hub, hf://OWNER/NAME\n"));
  CHECK(here.roux({"run", "r.yaml", "--set", "init_from=" + here.hub.url() + "/a#sha256=" + std::string(64, '0')}) ==
        2);
  CHECK(here.says("has no file " + here.hub.url() + "/a: it answers 404"));
  CHECK(here.roux({"fetch", "http://host/a.jsonl"}) == 2);
  CHECK(here.says("http is for servers on this machine"));
  CHECK(here.roux({"generate", "https://host/a.safetensors", "--prompt", "a"}) == 2);
  CHECK(here.says("https://host/a.safetensors names a file, and a model is a folder of several"));
}

namespace {

/// A data set of two subsets, of which one has two splits in three files.
struct WithDataSet : Here {
  WithDataSet() {
    auto& files = hub.repositories["datasets/ada/sets"][kFirst].files;
    files["README.md"] = {
        "---\nconfigs:\n- {config_name: counts, data_files: [{split: train, path: 'c/*'}, {split: test, path: "
        "t.jsonl}]}\n"
        "- {config_name: notes, data_files: n.txt}\n---\n"};
    files["c/1.jsonl"] = {lines(20)};
    files["c/2.jsonl"] = {lines(11), true};
    files["t.jsonl"] = {lines(4)};
    files["n.txt"] = {"words\n"};
    hub.revisions["datasets/ada/sets"]["main"] = kFirst;
    folder.write(
        "s.yaml",
        "extends: r.yaml\ndata:\n  train: {path: hf://datasets/ada/sets, subset: counts, split: 'train[:5%]'}\n"
        "  val: {type: ids, path: hf://datasets/ada/sets, subset: counts}\n");
  }
  static std::string lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "{\"input_ids\": [1, 2, " + std::to_string(i) + "]}\n";
    return text;
  }
  static std::string file(const std::string& name, const std::string& commit = kFirst) {
    return "hf://datasets/ada/sets@" + commit + "/" + name + "  cache/datasets--ada--sets/snapshots/" + commit + "/" +
           name + "\n";
  }
};

}  // namespace

TEST_CASE("fetch of a data set names files and sizes, and prints where they are", "[hub][cli]") {
  WithDataSet here;
  CHECK(here.roux({"fetch", "hf://datasets/ada/sets"}) == 2);
  CHECK(
      here.says("error: hf://datasets/ada/sets has 2 subsets, and none is named\n  hint: name one as subset; its "
                "subsets: counts, notes\n"));
  REQUIRE(here.roux({"fetch", "hf://datasets/ada/sets", "--subset", "counts", "--split", "train"}) == 0);
  CHECK(here.says("fetching 2 files, "));
  CHECK(here.says("  c/2.jsonl  "));
  CHECK(here.said.ends_with(here.file("c/1.jsonl") + here.file("c/2.jsonl")));
  CHECK(here.roux({"-q", "fetch", "hf://datasets/ada/sets", "--subset", "counts"}) == 0);
  CHECK(here.said == here.file("c/1.jsonl") + here.file("c/2.jsonl") + here.file("t.jsonl"));
  CHECK(here.roux({"fetch", "hf://ada/tiny", "--split", "train"}) == 2);
  CHECK(here.says("error: --subset and --split are of a data set, and hf://ada/tiny names none"));
  CHECK(here.roux({"fetch", "hf://datasets/ada/sets", "--set", "a=b"}) == 2);
  CHECK(here.says("is not a recipe, so nothing in it can be changed"));
}

TEST_CASE("validate and plan ask nothing about a data set", "[hub][cli]") {
  WithDataSet here;
  REQUIRE(here.roux({"fetch", "r.yaml"}) == 0);
  here.hub.asked.clear();
  CHECK(here.roux({"validate", "s.yaml"}) == 0);
  CHECK(here.says("notice: hf://datasets/ada/sets is not in the cache of the Hugging Face Hub"));
  CHECK(here.hub.asked.empty());
  here.offline = true;  // else the model's branch is asked for
  CHECK(here.roux({"plan", "s.yaml"}) == 2);
  CHECK(here.says("error: a plan reads the data, and hf://datasets/ada/sets is not here\n"));
  here.offline = false;
  REQUIRE(here.roux({"fetch", "s.yaml"}) == 0);
  CHECK(here.says(here.file("t.jsonl")));
  here.hub.asked.clear();
  here.offline = true;
  CHECK(here.roux({"plan", "s.yaml"}) == 0);
  CHECK(here.says("notice: data.val reads the split \"test\" of hf://datasets/ada/sets@" + kFirst + ", 1 file"));
  CHECK(here.roux({"validate", "s.yaml"}) == 0);
  CHECK(here.hub.asked.empty());
  CHECK(here.roux({"validate", "s.yaml", "--set", "data.train.split=tarin"}) == 2);
  CHECK(
      here.says("--set data.train.split=tarin: error: the subset \"counts\" of hf://datasets/ada/sets has no split "
                "\"tarin\"\n  hint: did you mean \"train\"? its splits: train, test\n"));
}

TEST_CASE("a run records the files of a data set, and reads the same ones again", "[hub][cli]") {
  WithDataSet here;
  REQUIRE(here.roux({"run", "s.yaml"}) == 0);
  CHECK(here.recorded().find("\"hf://datasets/ada/sets@" + kFirst + "/c/2.jsonl\"") != std::string::npos);
  CHECK(here.recorded().find("\"[:5%]\"") != std::string::npos);
  CHECK(here.recorded().find("snapshots") == std::string::npos);

  auto& sets = here.hub.repositories["datasets/ada/sets"];
  sets[kSecond] = sets[kFirst];
  sets[kSecond].files["c/0.jsonl"] = {here.lines(3)};
  here.hub.revisions["datasets/ada/sets"]["main"] = kSecond;
  fs::remove_all("own");  // what the repository holds is not asked for
  here.hub.asked.clear();
  REQUIRE(here.roux({"resume", "t", "--checkpoint", "last", "--set", "training.max_steps=3", "--allow-change",
                     "training.max_steps"}) == 0);
  CHECK(here.roux({"eval", "t"}) == 0);
  CHECK(here.hub.asked.empty());
  CHECK(here.roux({"run", "s.yaml", "--checkpoint", "last", "--set", "training.max_steps=4", "--allow-change",
                   "training.max_steps"}) == 2);
  CHECK(here.says("hf://datasets/ada/sets@" + kSecond + "/c/0.jsonl"));  // the branch was moved meanwhile
}

TEST_CASE("a slice takes the records that the datasets library takes", "[hub][cli]") {
  WithDataSet here;
  REQUIRE(here.roux({"fetch", "s.yaml"}) == 0);
  here.offline = true;
  struct Case {
    const char *split, *samples;
  };
  // len(load_dataset(...)) of 31 records: percentages are rounded to the nearest, of two to the even one.
  static constexpr Case cases[] = {
      {"train[:5%]", "2"},      {"train[:50%]", "16"}, {"train[50%:]", "15"}, {"train[-10%:]", "3"}, {"train[:7]", "7"},
      {"train[25:1_000]", "6"}, {"train[-4:]", "4"},   {"train", "31"},       {"[:10]", "10"},       {":50%", "15"}};
  for (const Case& c : cases) {
    CAPTURE(c.split);
    CHECK(here.roux({"data", "stats", "s.yaml", "--set", "data.train.split=\"" + std::string(c.split) + "\""}) == 0);
    CHECK(here.says("  samples           " + std::string(c.samples) + "\n"));
  }
  CHECK(here.roux({"plan", "s.yaml", "--set", "data.train.split=train[5:10%]"}) == 2);
  CHECK(here.says("split \"[5:10%]\" has percent on one side and a number on the other"));
  CHECK(here.roux({"plan", "s.yaml", "--set", "data.train.split=train[20%:10%]"}) == 2);
  CHECK(here.says("split \"[20%:10%]\" is empty: its end is not after its start"));
  CHECK(here.roux({"plan", "s.yaml", "--set", "data.train.split_by=files"}) == 2);
  CHECK(here.says("split \"[:5%]\" takes records in their order, and split_by is files, which takes whole files"));
}
