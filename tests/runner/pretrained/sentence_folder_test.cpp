#include "runner/pretrained/sentence_folder.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"

namespace runner::pretrained {
namespace {

constexpr const char* kModules =
    R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";

class Sentences {
 public:
  Sentences() {
    std::filesystem::create_directory(folder_ / "1_Pooling");
    write("modules.json", kModules);
    write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false})");
  }
  void write(const std::string& name, const std::string& text) const {
    core::write_file_atomic(folder_ / name, text).value();
  }
  core::Result<SentenceFolder> read() const { return read_sentence_folder(folder_.path()); }
  /// What is said of it, behind the folder's name.
  std::string problem() const {
    const auto read_folder = read();
    return read_folder ? "" : read_folder.failure().message.substr(std::string(folder_.path()).size() + 1);
  }
  std::string path() const { return folder_.path(); }

 private:
  tests::TempDir folder_;
};

}  // namespace

TEST_CASE("pooling, normalization and length are read from a Sentence Transformers folder", "[pretrained][sentences]") {
  const Sentences folder;
  REQUIRE(folder.read());
  CHECK(folder.read().value().pooling == "mean");
  CHECK_FALSE(folder.read().value().normalize);
  CHECK_FALSE(folder.read().value().max_seq_length);
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
  folder.write("1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})");
  CHECK(folder.read().value().max_seq_length == 256);
  CHECK(folder.read().value().pooling == "last");
}

TEST_CASE("what roux writes of such a folder it reads again", "[pretrained][sentences]") {
  for (const char* pooling : {"mean", "cls", "last"}) {
    for (const bool normalize : {false, true}) {
      const Sentences folder;
      for (const auto& [name, text] : sentence_files({pooling, normalize, 128}, 16)) folder.write(name, text);
      const auto read = folder.read();
      REQUIRE(read);
      CHECK(read.value().pooling == pooling);
      CHECK(read.value().normalize == normalize);
      CHECK(read.value().max_seq_length == 128);
    }
  }
}

TEST_CASE("what roux does not compute of such a folder is named", "[pretrained][sentences]") {
  struct Case {
    const char *file, *text, *problem;
  };
  const std::string more = std::string(kModules).substr(0, std::string(kModules).size() - 1);
  const std::string dense = more + R"(, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])";
  const Case cases[] = {
      {"modules.json", dense.c_str(),
       "modules.json: module 2 is \"Dense\" in \"2_Dense\", and roux computes a Transformer in the folder itself, a "
       "Pooling, and a Normalize or none"},
      {"modules.json", R"([{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}])",
       "modules.json: module 0 is \"Transformer\" in \"0_Transformer\", and roux computes a Transformer in the folder "
       "itself, a Pooling, and a Normalize or none"},
      {"modules.json", "[]", "modules.json lacks a module Pooling"},
      {"modules.json", "{}", "modules.json is not a list of modules"},
      {"1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})",
       "1_Pooling/config.json: the pooling is max, and roux computes one of mean, cls and lasttoken"},
      {"1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})",
       "1_Pooling/config.json: the pooling is cls, mean, and roux computes one of mean, cls and lasttoken"},
      {"1_Pooling/config.json", "[]", "1_Pooling/config.json is not an object"},
      {"sentence_bert_config.json", R"({"do_lower_case": true})",
       "sentence_bert_config.json: do_lower_case is true, and roux writes no text in lower case before the tokenizer"},
      {"config_sentence_transformers.json", R"({"default_prompt_name": "query"})",
       "config_sentence_transformers.json: default_prompt_name is \"query\", and roux puts no prompt before a text"},
  };
  for (const Case& c : cases) {
    INFO(c.file << ": " << c.text);
    const Sentences folder;
    folder.write(c.file, c.text);
    CHECK(folder.problem() == c.problem);
  }
}

}  // namespace runner::pretrained
