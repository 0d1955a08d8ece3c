#include "runner/hub/fetch.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "runner/core/error.h"
#include "runner/hub/file_lock.h"
#include "runner/net/digest.h"
#include "tests/runner/hub/hub_stand_in.h"
#include "tests/support/folder.h"
#include "tests/support/process/variables.h"

namespace {

namespace fs = std::filesystem;

using namespace runner::hub;
using hub_tests::HubStandIn;
using tests::HttpReply;

const std::string kFirst(40, 'a'), kSecond(40, 'b');

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A Hub with one model, and an empty cache.
struct Here {
  Here() {
    auto& files = hub.repositories["ada/tiny"][kFirst].files;
    files["config.json"] = {R"({"model_type": "llama"})"};
    files["tokenizer.json"] = {"{}"};
    files["README.md"] = {"about"};
    files["model.safetensors"] = {std::string(300'000, 'w'), true};
    files["pytorch_model.bin"] = {std::string(1000, 'p'), true};
    hub.revisions["ada/tiny"]["main"] = kFirst;
  }

  Settings settings(bool offline = false) const { return {"cache", hub.url(), offline}; }
  FetchWatch watch() {
    return {.wait = [this](double seconds) { waits.push_back(seconds); },
            .notes = [this](const std::string& message) { notes.push_back(message); }};
  }
  Located get(const std::string& name = "hf://ada/tiny", Part part = Part::kAll, bool offline = false) {
    return fetch(parse_name(name).value(), part, settings(offline), watch());
  }
  std::string error(const std::string& name = "hf://ada/tiny", Part part = Part::kAll, bool offline = false) {
    try {
      get(name, part, offline);
    } catch (const runner::core::RunError& failed) {
      status = failed.exit_code();
      std::string text = std::string(failed.what()) + " | " + failed.hint();
      const std::string host = settings().host();
      for (std::size_t at; (at = text.find(host)) != std::string::npos;) text.replace(at, host.size(), "HUB");
      return text;
    }
    return "nothing was thrown";
  }
  std::string weights_hash() const {
    return runner::net::sha256(hub.repositories.at("ada/tiny").at(kFirst).files.at("model.safetensors").content);
  }

  tests::Folder folder;
  tests::Variables variables{{{"HF_TOKEN", "hf_secret"}, {"HF_TOKEN_PATH", "no-token"}}};
  HubStandIn hub;
  std::vector<double> waits;
  std::vector<std::string> notes;
  int status = 0;
};

const fs::path kRepository = "cache/models--ada--tiny";

}  // namespace

TEST_CASE("a model comes into the layout of huggingface_hub's cache", "[hub]") {
  Here here;
  const Located got = here.get();
  const fs::path snapshot = kRepository / "snapshots" / kFirst;
  CHECK(got.path == snapshot.string());
  CHECK(got.pinned == "hf://ada/tiny@" + kFirst);
  CHECK(content(kRepository / "refs/main") == kFirst);
  CHECK(fs::read_symlink(snapshot / "model.safetensors") == "../../blobs/" + here.weights_hash());
  CHECK(content(snapshot / "model.safetensors") == std::string(300'000, 'w'));
  CHECK(fs::read_symlink(snapshot / "tokenizer.json") == "../../blobs/" + hub_tests::git_hash("{}"));
  CHECK(fs::exists("cache/.locks/models--ada--tiny/" + here.weights_hash() + ".lock"));
  CHECK(fs::exists(kRepository / ".no_exist" / kFirst / "merges.txt"));
  CHECK_FALSE(fs::exists(snapshot / "pytorch_model.bin"));  // safetensors are there
  CHECK_FALSE(fs::exists(snapshot / "README.md"));
  CHECK(here.hub.downloads() == 4);  // one of them is redirected
}

TEST_CASE("the token goes to the Hub and not to the storage it redirects to", "[hub]") {
  Here here;
  here.get();
  bool storage_asked = false;
  for (const auto& one : here.hub.asked) {
    CHECK(one.authorization == (one.of_storage ? "" : "Bearer hf_secret"));
    storage_asked |= one.of_storage;
  }
  CHECK(storage_asked);
}

TEST_CASE("what is in the cache is not downloaded again", "[hub]") {
  Here here;
  here.get();
  here.hub.asked.clear();
  here.get();
  CHECK(here.hub.asked.size() == 1);  // which commit main is
  here.get("hf://ada/tiny@" + kFirst);
  CHECK(here.hub.asked.size() == 1);
  CHECK(here.get("hf://ada/tiny", Part::kAll, /*offline=*/true).path == (kRepository / "snapshots" / kFirst).string());
  CHECK(locate(parse_name("hf://ada/tiny").value(), here.settings())->pinned == "hf://ada/tiny@" + kFirst);
}

TEST_CASE("a moved branch gets a snapshot of its own, which shares unchanged files", "[hub]") {
  Here here;
  here.get();
  here.hub.repositories["ada/tiny"][kSecond] = here.hub.repositories["ada/tiny"][kFirst];
  here.hub.repositories["ada/tiny"][kSecond].files["config.json"] = {R"({"model_type": "gpt2"})"};
  here.hub.revisions["ada/tiny"]["main"] = kSecond;
  here.hub.asked.clear();
  const Located got = here.get();
  CHECK(got.pinned == "hf://ada/tiny@" + kSecond);
  CHECK(here.hub.downloads() == 1);
  CHECK(content(got.path + "/config.json") == R"({"model_type": "gpt2"})");
  CHECK(content(kRepository / "snapshots" / kFirst / "config.json") == R"({"model_type": "llama"})");
}

TEST_CASE("settings come without weights", "[hub]") {
  Here here;
  const Located got = here.get("hf://ada/tiny", Part::kSettings);
  CHECK(fs::exists(got.path + "/config.json"));
  CHECK_FALSE(fs::exists(got.path + "/model.safetensors"));
  CHECK(is_fetched(parse_name("hf://ada/tiny").value(), Part::kSettings, here.settings()));
  CHECK_FALSE(is_fetched(parse_name("hf://ada/tiny").value(), Part::kAll, here.settings()));
}

TEST_CASE("a lost connection resumes where it was lost", "[hub]") {
  Here here;
  here.hub.fault = [left = 2](const HubStandIn::Asked& asked,
                              const HttpReply& usual) mutable -> std::optional<HttpReply> {
    if (!asked.of_storage || left-- <= 0) return std::nullopt;
    HttpReply cut = usual;
    cut.cut_after = 100'000;
    return cut;
  };
  const Located got = here.get();
  CHECK(content(got.path + "/model.safetensors") == std::string(300'000, 'w'));
  std::vector<std::string> ranges;
  for (const auto& one : here.hub.asked) {
    if (one.of_storage) ranges.push_back(one.range);
  }
  CHECK(ranges == std::vector<std::string>{"", "bytes=100000-", "bytes=200000-"});
  CHECK(here.waits.size() == 2);
}

TEST_CASE("a killed download resumes from what it left", "[hub]") {
  Here here;
  here.folder.write((kRepository / "blobs" / (here.weights_hash() + ".incomplete")).string(),
                    std::string(250'000, 'w'));
  here.get();
  CHECK(std::any_of(here.hub.asked.begin(), here.hub.asked.end(),
                    [](const auto& one) { return one.of_storage && one.range == "bytes=250000-"; }));
  CHECK_FALSE(fs::exists(kRepository / "blobs" / (here.weights_hash() + ".incomplete")));
}

TEST_CASE("a server without ranges sends the whole file again", "[hub]") {
  Here here;
  here.folder.write((kRepository / "blobs" / (here.weights_hash() + ".incomplete")).string(),
                    std::string(250'000, 'x'));
  here.hub.fault = [](const HubStandIn::Asked& asked, const HttpReply&) -> std::optional<HttpReply> {
    if (!asked.of_storage) return std::nullopt;
    return HttpReply{200, std::string(300'000, 'w')};
  };
  CHECK(content(here.get().path + "/model.safetensors") == std::string(300'000, 'w'));
}

TEST_CASE("damaged content is downloaded once more, and never put in its place", "[hub]") {
  struct Case {
    const char* name;
    HttpReply reply;
    const char* message;
  };
  const Case cases[] = {
      {"other bytes", {200, std::string(300'000, 'v')}, "arrived damaged: its SHA-256 is"},
      {"too few", {200, std::string(299'999, 'w')}, "has 299999 bytes instead of 300000"},
      {"too many", {200, std::string(300'001, 'w')}, "has 300001 bytes instead of 300000"},
      {"another range", {206, std::string(300'000, 'w'), {}, {"Content-Range: bytes 7-300006/300007"}}, "has 0 bytes"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      Here here;
      int times = 0;
      here.hub.fault = [&](const HubStandIn::Asked& asked, const HttpReply&) -> std::optional<HttpReply> {
        if (!asked.of_storage) return std::nullopt;
        ++times;
        return c.reply;
      };
      CHECK_THAT(here.error(), Catch::Contains(c.message));
      CHECK(times == 2);
      CHECK_FALSE(fs::exists(kRepository / "blobs" / here.weights_hash()));
      CHECK_FALSE(fs::exists(kRepository / "refs/main"));
      here.hub.fault = [left = 1, &c](const HubStandIn::Asked& asked,
                                      const HttpReply&) mutable -> std::optional<HttpReply> {
        return asked.of_storage && left-- > 0 ? std::make_optional(c.reply) : std::nullopt;
      };
      CHECK(content(here.get().path + "/model.safetensors") == std::string(300'000, 'w'));
    }
  }
}

TEST_CASE("a small file is checked by git's hash", "[hub]") {
  Here here;
  here.hub.fault = [](const HubStandIn::Asked& asked, const HttpReply& usual) -> std::optional<HttpReply> {
    if (asked.method != "GET" || !asked.path.ends_with("/config.json")) return std::nullopt;
    HttpReply other = usual;
    other.body[0] = '[';
    return other;
  };
  CHECK_THAT(here.error(),
             Catch::Contains("\"config.json\" of hf://ada/tiny@" + kFirst + " arrived damaged: its SHA-1"));
}

TEST_CASE("shards of an index are fetched, and none outside of the repository", "[hub]") {
  Here here;
  auto& files = here.hub.repositories["ada/tiny"][kFirst].files;
  files.erase("model.safetensors");
  files["model-1.safetensors"] = {"one", true};
  files["model-2.safetensors"] = {"two", true};
  const auto index = [&](const std::string& second) {
    files["model.safetensors.index.json"] = {R"({"weight_map": {"a": "model-1.safetensors", "b": ")" + second + "\"}}"};
  };
  index("model-2.safetensors");
  SECTION("all are there") {
    const Located got = here.get();
    CHECK(content(got.path + "/model-2.safetensors") == "two");
    fs::remove(got.path + "/model-2.safetensors");
    CHECK_FALSE(is_fetched(parse_name("hf://ada/tiny").value(), Part::kAll, here.settings()));
  }
  SECTION("one is not") {
    index("model-3.safetensors");
    CHECK(here.error() ==
          "hf://ada/tiny@" + kFirst +
              "/model.safetensors.index.json names \"model-3.safetensors\", which the repository lacks | "
              "tell the owner of the repository, or name another revision");
  }
  for (const std::string hostile : {"../../evil", "/etc/passwd", "a/../b", "a//b", "a\\\\b", ""}) {
    DYNAMIC_SECTION("hostile " + hostile) {
      index(hostile);
      files[hostile] = {"evil", true};
      CHECK_THAT(here.error(), Catch::Contains("is not an index of weights"));
      CHECK_FALSE(fs::exists("evil"));
    }
  }
}

TEST_CASE("a hash that is not a plain name is refused", "[hub]") {
  Here here;
  here.hub.fault = [](const HubStandIn::Asked& asked, const HttpReply& usual) -> std::optional<HttpReply> {
    if (asked.method != "HEAD") return std::nullopt;
    HttpReply other = usual;
    other.headers = {"ETag: \"../../../evil\""};
    return other;
  };
  CHECK(here.error() ==
        "HUB does not say what \"tokenizer.json\" of hf://ada/tiny@" + kFirst +
            " is | check HF_ENDPOINT and the proxy: the headers ETag and X-Repo-Commit must come through");
}

TEST_CASE("a full disk keeps what is there", "[hub]") {
  Here here;
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {100'000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string error = here.error();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(error,
             Catch::Contains("`ulimit -f` allows no file of this size") && Catch::Contains("the same command resumes"));
  CHECK(here.status == runner::core::kExitResumable);
  CHECK(fs::file_size(kRepository / "blobs" / (here.weights_hash() + ".incomplete")) == 100'000);
  CHECK(content(here.get().path + "/model.safetensors") == std::string(300'000, 'w'));
}

TEST_CASE("a model that cannot fit is refused before it is downloaded", "[hub]") {
  Here here;
  here.hub.fault = [](const HubStandIn::Asked& asked, const HttpReply& usual) -> std::optional<HttpReply> {
    if (asked.method != "HEAD" || !asked.path.ends_with("/model.safetensors")) return std::nullopt;
    HttpReply large = usual;
    for (std::string& header : large.headers) {
      if (header.starts_with("X-Linked-Size")) header = "X-Linked-Size: 9000000000000000000";
    }
    return large;
  };
  CHECK_THAT(here.error(), Catch::Contains("and the disk of cache/models--ada--tiny has"));
  CHECK(here.status == runner::core::kExitResumable);
  CHECK(here.hub.downloads() == 0);
}

TEST_CASE("a second process waits for the first and downloads nothing", "[hub]") {
  Here here;
  const std::string hash = here.weights_hash();
  auto held = std::make_unique<FileLock>("cache/.locks/models--ada--tiny/" + hash + ".lock", Wait(), nullptr);
  FetchWatch watch = here.watch();
  watch.wait = [&](double) {
    here.folder.write((kRepository / "blobs" / hash).string(), std::string(300'000, 'w'));
    held.reset();
  };
  fetch(parse_name("hf://ada/tiny").value(), Part::kAll, here.settings(), watch);
  CHECK(here.notes == std::vector<std::string>{"another process downloads model.safetensors; waiting for it"});
  CHECK(std::none_of(here.hub.asked.begin(), here.hub.asked.end(), [](const auto& one) { return one.of_storage; }));
}

TEST_CASE("offline and without a connection the cache serves, or the error says why", "[hub]") {
  Here here;
  CHECK(here.error("hf://ada/tiny", Part::kAll, true) ==
        "hf://ada/tiny is not whole in the cache cache/models--ada--tiny, and HF_HUB_OFFLINE is set | unset "
        "HF_HUB_OFFLINE, or copy the cache of a machine that has it");
  CHECK(here.hub.asked.empty());
  here.get();
  here.hub.fault = [](const HubStandIn::Asked&, const HttpReply&) { return HttpReply{503, "busy"}; };
  CHECK(here.get().pinned == "hf://ada/tiny@" + kFirst);
  CHECK(here.waits.empty());
  REQUIRE(here.notes.size() == 1);
  CHECK_THAT(here.notes[0], Catch::Contains("answers 503") && Catch::EndsWith("from the cache"));
}

TEST_CASE("an overloaded Hub is asked again, when it says", "[hub]") {
  Here here;
  SECTION("until it answers") {
    here.hub.fault = [left = 2](const HubStandIn::Asked&, const HttpReply&) mutable -> std::optional<HttpReply> {
      if (left-- <= 0) return std::nullopt;
      return HttpReply{429, "slow down", {}, {"Retry-After: 7"}};
    };
    here.get();
    CHECK(here.waits == std::vector<double>{7, 7});
  }
  SECTION("five times") {
    here.hub.fault = [](const HubStandIn::Asked&, const HttpReply&) { return HttpReply{503, "busy"}; };
    CHECK(here.error() == "HUB is overloaded: it answers 503: \"busy\" | try again later");
    CHECK(here.waits == std::vector<double>{1, 2, 4, 8});
  }
  SECTION("but not in an hour") {
    here.hub.fault = [](const HubStandIn::Asked&, const HttpReply&) {
      return HttpReply{429, "", {}, {"Retry-After: 3600"}};
    };
    CHECK(here.error() == "HUB is overloaded: it answers 429 | try again in 1 h 00 min");
    CHECK(here.waits.empty());
  }
}

TEST_CASE("a refusal says what to do", "[hub]") {
  struct Case {
    int status;
    const char* code;
    bool with_token;
    const char* message;
  };
  static constexpr Case cases[] = {
      {401, "RepoNotFound", false,
       "hf://ada/tiny is private or does not exist: HUB answers 401 | check the name; for a private repository, set "
       "HF_TOKEN to a token from http://HUB/settings/tokens"},
      {401, "", true,
       "HUB refuses the token for hf://ada/tiny: it answers 401 | check the name, or set HF_TOKEN to a valid token "
       "from "
       "http://HUB/settings/tokens"},
      {403, "GatedRepo", false,
       "access to hf://ada/tiny is restricted: HUB answers 403 | accept its terms at http://HUB/ada/tiny, and set "
       "HF_TOKEN to a token of that account from http://HUB/settings/tokens"},
      {401, "GatedRepo", true,
       "access to hf://ada/tiny is restricted: HUB answers 401 | accept its terms at http://HUB/ada/tiny with the "
       "account of your token, which must allow it"},
      {404, "RepoNotFound", true,
       "HUB has no model ada/tiny | check the name; a data set is hf://datasets/OWNER/NAME, and a private one needs "
       "HF_TOKEN"},
      {404, "RevisionNotFound", true,
       "ada/tiny has no revision \"main\" at HUB | http://HUB/ada/tiny/tree/main lists branches and tags"},
      {400, "", true, "HUB answers 400 for hf://ada/tiny: \"no\" | check HF_ENDPOINT and the proxy"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.status << c.code << c.with_token) {
      Here here;
      if (!c.with_token) unsetenv("HF_TOKEN");
      here.hub.fault = [&c](const HubStandIn::Asked&, const HttpReply&) {
        return HttpReply{c.status, "no", {}, {std::string("X-Error-Code: ") + c.code}};
      };
      CHECK(here.error() == c.message);
    }
  }
}

TEST_CASE("what a repository lacks is named, with what it has", "[hub]") {
  Here here;
  CHECK(here.error("hf://ada/tiny/modle.safetensors") ==
        "hf://ada/tiny has no file \"modle.safetensors\" | did you mean \"model.safetensors\"? its files: README.md, "
        "config.json, model.safetensors, pytorch_model.bin, tokenizer.json");
  auto& files = here.hub.repositories["ada/tiny"][kFirst].files;
  files.erase("model.safetensors");
  files.erase("tokenizer.json");
  CHECK(fs::exists(here.get().path + "/pytorch_model.bin"));
  files.erase("pytorch_model.bin");
  fs::remove_all("cache");
  CHECK(
      here.error() ==
      "hf://ada/tiny has no weights that roux reads: neither model.safetensors nor pytorch_model.bin, nor an index of "
      "one, is in it | its files: README.md, config.json");
  CHECK(here.error("hf://ada/tiny", Part::kTokenizer) ==
        "hf://ada/tiny has no tokenizer: none of tokenizer.json, vocab.json and tokenizer.model is in it | its files: "
        "README.md, config.json");
}

TEST_CASE("a file of a data set is fetched", "[hub]") {
  Here here;
  here.hub.repositories["datasets/ada/words"][kFirst].files["data/a.jsonl"] = {"{}\n"};
  here.hub.revisions["datasets/ada/words"]["main"] = kFirst;
  const Located got = here.get("hf://datasets/ada/words/data/a.jsonl");
  CHECK(got.path == "cache/datasets--ada--words/snapshots/" + kFirst + "/data/a.jsonl");
  CHECK(got.pinned == "hf://datasets/ada/words@" + kFirst + "/data/a.jsonl");
  CHECK(content(got.path) == "{}\n");
  CHECK(fs::read_symlink(got.path) == "../../../blobs/" + hub_tests::git_hash("{}\n"));
}

TEST_CASE("redirects are followed on the Hub, not in a circle", "[hub]") {
  Here here;
  const auto moved = [](const std::string& to) { return HttpReply{307, "", {}, {"Location: " + to}}; };
  SECTION("a repository that was renamed") {
    here.hub.repositories["ada/small"] = here.hub.repositories["ada/tiny"];
    here.hub.fault = [&](const HubStandIn::Asked& asked, const HttpReply&) -> std::optional<HttpReply> {
      const auto at = asked.path.find("ada/tiny/resolve");
      if (at == std::string::npos) return std::nullopt;
      return moved("/ada/small" + asked.path.substr(at + 8));
    };
    CHECK(content(here.get().path + "/config.json") == R"({"model_type": "llama"})");
  }
  SECTION("in a circle") {
    here.hub.fault = [&](const HubStandIn::Asked& asked, const HttpReply&) { return moved(asked.path); };
    CHECK(here.error() == "HUB redirects more than 10 times | check HF_ENDPOINT and the proxy");
  }
  SECTION("to a file") {
    here.hub.fault = [&](const HubStandIn::Asked& asked, const HttpReply& usual) -> std::optional<HttpReply> {
      return asked.method == "GET" && usual.status == 302 ? std::make_optional(moved("file:///etc/passwd"))
                                                          : std::nullopt;
    };
    CHECK_THAT(here.error(), Catch::Contains("redirects to an address that is neither http nor https"));
  }
}
