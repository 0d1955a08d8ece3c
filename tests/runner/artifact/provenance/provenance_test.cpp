#include "runner/artifact/provenance/provenance.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "runner/artifact/provenance/secrets.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

Provenance example() {
  Provenance provenance;
  provenance.version = "0.1.0";
  provenance.source = "0123456789abcdef";
  provenance.libtorch = "2.11.0";
  provenance.cpu = "a processor";
  provenance.cpu_capability = "AVX2";
  provenance.threads = 2;
  provenance.total_steps = 60;
  provenance.environment = {{"OMP_NUM_THREADS", "2"}};
  provenance.folder = "/somewhere";
  provenance.recipe = "recipe.yaml";
  provenance.command_line = {"roux", "run", "recipe.yaml"};
  provenance.data = {{"train", "corpus.txt", 9, 1'700'000'000'000'000'000, "xxh128:aa"}};
  provenance.build = "Release, GNU 12.2.0";
  provenance.host = "a-host";
  provenance.cores = 2;
  provenance.memory_bytes = 4'000'000'000;
  provenance.code = GitState{}.to_node();
  return provenance;
}

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST_CASE("a provenance is read back as it was written", "[artifact][provenance]") {
  const TempDir dir;
  write(dir / "capsule.json", core::to_json(example().to_node()));
  const Provenance read = read_provenance(dir / "capsule.json").value();
  CHECK(core::to_json(read.to_node()) == core::to_json(example().to_node()));
  CHECK(list_causes(example(), read).empty());
}

TEST_CASE("a provenance without host and code, of an earlier version, is read", "[artifact][provenance]") {
  const TempDir dir;
  core::Node node = example().to_node();
  for (const char* key : {"build", "host", "cores", "memory_bytes", "code"}) node.erase(key);
  write(dir / "capsule.json", core::to_json(node));
  const Provenance read = read_provenance(dir / "capsule.json").value();
  CHECK(read.host.empty());
  CHECK(read.code.is_null());
  CHECK(list_causes(example(), read).empty());
}

TEST_CASE("variables are chosen by name, and a secret keeps its value to itself", "[artifact][provenance]") {
  setenv("ROUX_CAPSULE_TEST_A", "a=b", 1);
  setenv("CAPSULE_TEST_B", "b", 1);
  setenv("CAPSULE_TEST_API_KEY", "hush", 1);
  const auto usual = chosen_environment({});
  CHECK(usual.at("ROUX_CAPSULE_TEST_A") == "a=b");
  CHECK_FALSE(usual.contains("CAPSULE_TEST_B"));
  const auto asked = chosen_environment({"CAPSULE_TEST_*"});
  CHECK(asked.at("ROUX_CAPSULE_TEST_A") == "a=b");
  CHECK(asked.at("CAPSULE_TEST_B") == "b");
  CHECK(asked.at("CAPSULE_TEST_API_KEY") == kHiddenValue);
  unsetenv("ROUX_CAPSULE_TEST_A");
  unsetenv("CAPSULE_TEST_B");
  unsetenv("CAPSULE_TEST_API_KEY");
}

TEST_CASE("a variable that sounds secret is hidden, and so is a password in a URL", "[artifact][provenance]") {
  struct Case {
    const char *name, *value, *kept;
  };
  static constexpr Case cases[] = {
      {"SSH_PASSPHRASE", "hush", "(hidden)"},
      {"GH_PAT", "hush", "(hidden)"},
      {"AWS_ACCESS", "hush", "(hidden)"},
      {"MYSQL_PWD", "hush", "(hidden)"},
      {"DB_PASS", "hush", "(hidden)"},
      {"SENTRY_DSN", "hush", "(hidden)"},
      {"SLACK_WEBHOOK_URL", "hush", "(hidden)"},
      {"CAPSULE_TEST_PATH", "/bin", "/bin"},
      {"CAPSULE_TEST_PATTERN", "x", "x"},
      {"OLDPWD", "/home", "/home"},
      {"CAPSULE_TEST_URI", "http://me:hush@host:5000/a", "http://me:(hidden)@host:5000/a"},
      {"PGPASS", "hush", "(hidden)"},
      {"JWT", "hush", "(hidden)"},
      {"CAPSULE_TEST_SESSION", "hush", "(hidden)"},
      {"CAPSULE_TEST_A", "Server=a;Uid=me;Password=two words;Encrypt=yes",
       "Server=a;Uid=me;Password=(hidden)Encrypt=yes"},
      {"CAPSULE_TEST_A", "host=a password=hush", "host=a password=(hidden)"},
      {"CAPSULE_TEST_A", "Endpoint=sb://a/;SharedAccessKey=aGk=;EntityPath=b",
       "Endpoint=sb://a/;SharedAccessKey=(hidden)EntityPath=b"},
      {"CAPSULE_TEST_A", "{\"password\": \"hush\", \"n\": 1}", "{\"password\": (hidden), \"n\": 1}"},
      {"CAPSULE_TEST_A", "run --api-key hush --n 1", "run --api-key (hidden) --n 1"},
      {"CAPSULE_TEST_A", "Authorization: Bearer abcdefgh", "Authorization: (hidden)"},
      {"CAPSULE_TEST_A", "https://hush@host/a", "https://(hidden)@host/a"},
      {"CAPSULE_TEST_A", "git+https://hush:x-oauth-basic@host/a", "git+https://(hidden):(hidden)@host/a"},
      {"CAPSULE_TEST_A", "ssh://git@host/a", "ssh://git@host/a"},
      {"CAPSULE_TEST_A", "a hf_abcdefghijkl", "a (hidden)"},
      {"CAPSULE_TEST_A", "ghp_abcdefghijkl,x", "(hidden),x"},
      {"CAPSULE_TEST_A", "curl -u me:hush http://h", "curl -u me:(hidden) http://h"},
      {"CAPSULE_TEST_A", "https://hooks.slack.com/services/T0/B0/hush", "https://hooks.slack.com/(hidden)"},
      {"CAPSULE_TEST_A", "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "(hidden)"},
      {"CAPSULE_TEST_A", "AKIAIOSFODNN7EXAMPLE", "(hidden)"},
      {"CAPSULE_TEST_A", "eyJhbGciOi.eyJzdWIi.c2ln", "(hidden)"},
      {"CAPSULE_TEST_A", "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----", "(hidden)"},
      {"CAPSULE_TEST_A", "/opt/sk-learn:/usr/lib", "/opt/sk-learn:/usr/lib"},
      {"CAPSULE_TEST_PROXY", "a=http://h/?token=hush&n=1 b=http://h/", "a=http://h/?token=(hidden)&n=1 b=http://h/"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const char* there = std::getenv(c.name);
    const std::string before = there != nullptr ? there : "";
    setenv(c.name, c.value, 1);
    CHECK(chosen_environment({"*"}).at(c.name) == c.kept);
    there != nullptr ? setenv(c.name, before.c_str(), 1) : unsetenv(c.name);
  }
}

TEST_CASE("an invalid provenance is refused with the reason", "[artifact][provenance]") {
  const TempDir dir;
  const std::string path = dir / "capsule.json";
  const std::pair<std::string, std::string> cases[] = {
      {"{}", path + " is not a capsule of a run"},
      {R"({"capsule_version": 2})", path + " has version 2, this program reads up to 1"},
      {R"({"capsule_version": 1})", path + " has no usable \"version\""},
      {"[1", path + " cannot be read: "},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    write(path, text);
    const auto read = read_provenance(path);
    REQUIRE(!read);
    CHECK(read.failure().message.starts_with(message));
  }
  std::filesystem::remove(path);
  CHECK(!read_provenance(path));
}

TEST_CASE("each thing that can make other bits is a cause of its own", "[artifact][provenance]") {
  struct Case {
    const char* name;
    std::function<void(Provenance&)> change;
    std::vector<std::string> causes;
  };
  const Case cases[] = {
      {"nothing", [](Provenance&) {}, {}},
      {"a byte", [](Provenance& c) { c.data[0].checksum = "xxh128:ab"; }, {"file corpus.txt of data.train"}},
      {"a touch", [](Provenance& c) { c.data[0].mtime_ns += 1; }, {}},
      {"a size", [](Provenance& c) { c.data[0].bytes = 10; }, {"file corpus.txt of data.train"}},
      {"a file more",
       [](Provenance& c) {
         c.data.push_back({"train", "more.txt", 1, 1, ""});
       },
       {"file more.txt of data.train"}},
      {"a file less", [](Provenance& c) { c.data.clear(); }, {"file corpus.txt of data.train"}},
      {"threads", [](Provenance& c) { c.threads = 1; }, {"threads"}},
      {"instructions", [](Provenance& c) { c.cpu_capability = "AVX512"; }, {"CPU capability"}},
      {"LibTorch", [](Provenance& c) { c.libtorch = "2.12.0"; }, {"LibTorch"}},
      {"the program", [](Provenance& c) { c.source = "f"; }, {"source of roux"}},
      {"a variable", [](Provenance& c) { c.environment.clear(); }, {"OMP_NUM_THREADS"}},
      {"another folder", [](Provenance& c) { c.folder = "/elsewhere"; }, {}},
      {"the order that it was given", [](Provenance& c) { c.command_line = {"roux"}; }, {}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      Provenance after = example();
      c.change(after);
      std::vector<std::string> found;
      for (const Cause& cause : list_causes(example(), after)) found.push_back(cause.what);
      CHECK(found == c.causes);
    }
  }
}

TEST_CASE("a data file is known by its content", "[artifact][provenance]") {
  const TempDir dir;
  write(dir / "a", "abc");
  const DataFile read = read_data_file("train", dir / "a").value();
  CHECK(read.bytes == 3);
  CHECK(read.checksum == "xxh128:06b05ab6733a618578af5f94892f3950");  // `printf abc | xxhsum -H2`
  CHECK(stat_data_file("train", dir / "a").value().checksum.empty());
  const std::atomic<bool> stop = true;
  CHECK(read_data_file("train", dir / "a", &stop).value().checksum.empty());
  CHECK(!read_data_file("train", dir / "missing"));
}

}  // namespace runner::artifact
