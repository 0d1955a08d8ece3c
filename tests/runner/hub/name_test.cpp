#include "runner/hub/name.h"

#include <catch2/catch.hpp>

#include "runner/hub/settings.h"
#include "tests/support/folder.h"
#include "tests/support/process/variables.h"

namespace {

using namespace runner::hub;

}  // namespace

TEST_CASE("a name of the Hub has its parts", "[hub]") {
  struct Case {
    const char* text;
    const char *repository, *revision, *file;
    bool is_dataset;
    const char* again;  ///< "": as it was written
  };
  static constexpr Case cases[] = {
      {"hf://ada/tiny", "ada/tiny", "main", "", false, ""},
      {"hf://ada/tiny/", "ada/tiny", "main", "", false, "hf://ada/tiny"},
      {"hf://models/ada/tiny", "ada/tiny", "main", "", false, "hf://ada/tiny"},
      {"hf://ada/tiny@v1.0", "ada/tiny", "v1.0", "", false, ""},
      {"hf://ada/tiny@main/sub/a.bin", "ada/tiny", "main", "sub/a.bin", false, "hf://ada/tiny/sub/a.bin"},
      {"hf://ada/tiny@refs/pr/3/a.bin", "ada/tiny", "refs/pr/3", "a.bin", false, ""},
      {"hf://ada/tiny@one%2Ftwo/a.bin", "ada/tiny", "one/two", "a.bin", false, ""},
      {"hf://datasets/ada/words/a b.jsonl", "ada/words", "main", "a b.jsonl", true, ""},
      {"hf://ada/tiny/a@b", "ada/tiny", "main", "a@b", false, ""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      const Name name = parse_name(c.text).value();
      CHECK(name.repository() == c.repository);
      CHECK(name.revision == c.revision);
      CHECK(name.file == c.file);
      CHECK(name.is_dataset == c.is_dataset);
      CHECK(name.text() == (*c.again == '\0' ? c.text : c.again));
    }
  }
}

TEST_CASE("a wrong name says why", "[hub]") {
  struct Case {
    const char *text, *why;
  };
  static constexpr Case cases[] = {
      {"hf://", "the owner of the repository is not in it"},
      {"hf://gpt2", "the owner of the repository is not in it"},
      {"hf://gpt2@main", "the owner of the repository is not in it"},
      {"hf:///tiny", "owner and name consist of letters, digits and single - _ . between them"},
      {"hf://ada/", "owner and name consist of letters, digits and single - _ . between them"},
      {"hf://../tiny", "owner and name consist of letters, digits and single - _ . between them"},
      {"hf://ada/a--b", "owner and name consist of letters, digits and single - _ . between them"},
      {"hf://ada/tiny.git", "owner and name consist of letters, digits and single - _ . between them"},
      {"hf://ada/tiny@", "the revision is not the name of a branch, tag or commit"},
      {"hf://ada/tiny@..%2F..%2Fx", "the revision is not the name of a branch, tag or commit"},
      {"hf://ada/tiny@a b", "the revision is not the name of a branch, tag or commit"},
      {"hf://ada/tiny/../x", "the file is not a plain relative path"},
      {"hf://ada/tiny//x", "the file is not a plain relative path"},
      {"hf://ada/tiny/a\\b", "the file is not a plain relative path"},
      {"hf://datasets/ada/words/*.jsonl", "patterns are not expanded on the Hub"},
      {"hf://spaces/ada/demo", "only models and data sets can be read"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      const auto name = parse_name(c.text);
      REQUIRE_FALSE(name.ok());
      CHECK_THAT(name.failure().message,
                 Catch::EndsWith(std::string("names nothing on the Hugging Face Hub: ") + c.why));
      CHECK_FALSE(name.failure().hint.empty());
    }
  }
  CHECK_FALSE(is_safe_path(std::string("a\0b", 3)));
}

TEST_CASE("the environment says where cache, endpoint and token are", "[hub]") {
  const tests::Folder here;
  const auto cache_with = [](const tests::Variables::Values& values) {
    const tests::Variables variables(values);
    return read_settings().value().cache;
  };
  const std::string home = std::getenv("HOME");
  CHECK(cache_with({}) == home + "/.cache/huggingface/hub");
  CHECK(cache_with({{"XDG_CACHE_HOME", "/x"}}) == "/x/huggingface/hub");
  CHECK(cache_with({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "~/h"}}) == home + "/h/hub");
  CHECK(cache_with({{"HF_HOME", "/h"}, {"HF_HUB_CACHE", "/c"}}) == "/c");
  {
    const tests::Variables variables(
        tests::Variables::Values({{"HF_ENDPOINT", "https://u:secret@mirror/"}, {"HF_HUB_OFFLINE", "ON"}}));
    CHECK(read_settings().value().endpoint == "https://u:secret@mirror");
    CHECK(read_settings().value().host() == "mirror");
    CHECK(read_settings().value().offline);
  }
  {
    const tests::Variables variables(tests::Variables::Values({{"HF_ENDPOINT", "mirror"}}));
    CHECK(read_settings().failure().message == "HF_ENDPOINT must begin with https:// or http://, got \"mirror\"");
  }
  here.write("home/token", "hf_file\n");
  {
    const tests::Variables variables(tests::Variables::Values({{"HF_HOME", "home"}}));
    CHECK(read_token().value() == "hf_file");
  }
  {
    const tests::Variables variables(tests::Variables::Values({{"HF_HOME", "home"}, {"HF_TOKEN", " hf_variable\n"}}));
    CHECK(read_token().value() == "hf_variable");
  }
  {
    const tests::Variables variables(tests::Variables::Values({{"HF_HOME", "home"}, {"HF_TOKEN_PATH", "nowhere"}}));
    CHECK(read_token().value().empty());
  }
  {
    const tests::Variables variables(tests::Variables::Values({{"HF_TOKEN", "hf_a\tX-Other: b"}}));
    CHECK_THAT(read_token().failure().message, Catch::StartsWith("HF_TOKEN is not a token"));
    CHECK_THAT(read_token().failure().message, !Catch::Contains("hf_a"));
  }
}
