#include "runner/hub/web_file.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/hub/cache.h"
#include "runner/hub/download.h"
#include "runner/hub/file_lock.h"
#include "runner/net/digest.h"
#include "tests/runner/hub/hub_stand_in.h"
#include "tests/support/folder.h"
#include "tests/support/process/http_server.h"
#include "tests/support/process/variables.h"

namespace {

namespace fs = std::filesystem;

using namespace runner::hub;
using tests::HttpReply;
using tests::HttpRequest;

const std::string kContent(300'000, 'w');
const std::string kHash = runner::net::sha256(kContent);

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A server with one file, and an empty cache.
struct Here {
  Settings settings(bool offline = false) const { return {"hub", "https://unused", offline, "files"}; }
  std::string name(const std::string& path = "/data/a.jsonl?v=2", const std::string& hash = kHash) const {
    return server.url() + path + "#sha256=" + hash;
  }
  FetchWatch watch() {
    return {.wait = [this](double seconds) { waits.push_back(seconds); },
            .notes = [this](const std::string& message) { notes.push_back(message); }};
  }
  Located get(const std::string& name, bool offline = false) {
    return fetch(parse_web_file(name).value(), settings(offline), watch());
  }
  std::string error(const std::string& name, bool offline = false) {
    try {
      get(name, offline);
    } catch (const runner::core::RunError& failed) {
      status = failed.exit_code();
      std::string text = std::string(failed.what()) + " | " + failed.hint();
      const std::string host = server.url().substr(7);
      for (std::size_t at; (at = text.find(host)) != std::string::npos;) text.replace(at, host.size(), "HOST");
      return text;
    }
    return "nothing was thrown";
  }
  HttpReply handle(const HttpRequest& request) {
    asked.push_back(request);
    const auto range = request.headers.find("range");
    const HttpReply usual = request.path.starts_with("/data/")
                                ? hub_tests::part_of(kContent, range == request.headers.end() ? "" : range->second)
                                : HttpReply{404, "no"};
    return fault ? fault(request, usual).value_or(usual) : usual;
  }
  std::vector<std::string> ranges() const {
    std::vector<std::string> all;
    for (const HttpRequest& one : asked) all.push_back(one.headers.contains("range") ? one.headers.at("range") : "");
    return all;
  }

  tests::Folder folder;
  tests::Variables variables{{{"HF_TOKEN", "hf_secret"}}};
  std::function<std::optional<HttpReply>(const HttpRequest&, const HttpReply& usual)> fault;
  std::vector<HttpRequest> asked;
  tests::HttpServer server{[this](const HttpRequest& request) { return handle(request); }};
  std::vector<double> waits;
  std::vector<std::string> notes;
  int status = 0;
};

const fs::path kBlob = fs::path("files/blobs") / kHash;

}  // namespace

TEST_CASE("a URL is written with its checksum", "[hub]") {
  struct Case {
    std::string text, url, file;
  };
  const std::string upper(64, 'A'), lower(64, 'a');
  const Case cases[] = {
      {"https://host/a/b.jsonl#sha256=" + lower, "https://host/a/b.jsonl", "b.jsonl"},
      {"https://host:8443/b.bin?x=/y&z=1#sha256=" + upper, "https://host:8443/b.bin?x=/y&z=1", "b.bin"},
      {"https://host/a%20b%2F..%2f.csv#sha256=" + lower, "https://host/a%20b%2F..%2f.csv", "a_b_.._.csv"},
      {"https://host/.profile#sha256=" + lower, "https://host/.profile", "_profile"},
      {"http://localhost:80/a#sha256=" + lower, "http://localhost:80/a", "a"},
      {"http://[::1]/a%2#sha256=" + lower, "http://[::1]/a%2", "a_2"},
      {"https://host/" + std::string(300, 'x') + ".csv#sha256=" + lower,
       "https://host/" + std::string(300, 'x') + ".csv", std::string(196, 'x') + ".csv"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      const WebFile file = parse_web_file(c.text).value();
      CHECK(file.url == c.url);
      CHECK(file.file() == c.file);
      CHECK(file.sha256 == lower);
      CHECK(parse_web_file(file.text()).value().text() == file.text());
    }
  }
}

TEST_CASE("what is wrong with a URL is said, with the form to write", "[hub]") {
  struct Case {
    std::string text, error;
  };
  const std::string hex(64, 'a');
  const std::string form = "write https://host/f#sha256=HEX; `sha256sum FILE` prints HEX of a file that you have";
  const Case cases[] = {
      {"https://host/f", "\"https://host/f\" cannot be fetched: it has no checksum | " + form},
      {"https://host/f#md5=00",
       "\"https://host/f#md5=00\" cannot be fetched: after # there must be sha256= and 64 hex digits | " + form},
      {"https://host/f#sha256=00",
       "\"https://host/f#sha256=00\" cannot be fetched: after # there must be sha256= and 64 hex digits | " + form},
      {"https://host/f#sha256=" + hex + "&x", "\"https://host/f#sha256=" + hex +
                                                  "&x\" cannot be fetched: after # there must be sha256= and 64 hex "
                                                  "digits | " +
                                                  form},
      {"http://host/f#sha256=" + hex, "\"http://host/f#sha256=" + hex +
                                          "\" cannot be fetched: http is for servers on this machine | write https:// "
                                          "if the server has it; else download the file, and name its path"},
      {"http://localhost.host/f",
       "\"http://localhost.host/f\" cannot be fetched: http is for servers on this machine | write https:// if the "
       "server has it; else download the file, and name its path"},
      {"https://me:secret@host/f",
       "a URL with a user name or password cannot be fetched: the run would record them | download the file by other "
       "means, and name its path"},
      {"https://host/a/",
       "\"https://host/a/\" cannot be fetched: it names no file | write https://HOST/PATH#sha256=HEX"},
      {"https://host", "\"https://host\" cannot be fetched: it names no file | write https://HOST/PATH#sha256=HEX"},
      {"https:///f", "\"https:///f\" cannot be fetched: it has no host | write https://HOST/PATH#sha256=HEX"},
      {"https://host/a b",
       "\"https://host/a b\" cannot be fetched: it holds a character that no URL has | write that as %XX, a space as "
       "%20"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      const auto file = parse_web_file(c.text);
      REQUIRE_FALSE(file.ok());
      CHECK(file.failure().message + " | " + file.failure().hint == c.error);
      CHECK(file.failure().exit_code == runner::core::kExitUsage);
    }
  }
  CHECK_FALSE(parse_web_file("https://host/" + std::string(5000, 'x')).ok());
  CHECK_FALSE(parse_web_file(std::string("https://host/\0", 14)).ok());
}

TEST_CASE("a file of a server comes into the cache once, under its checksum", "[hub]") {
  Here here;
  CHECK_FALSE(locate(parse_web_file(here.name()).value(), here.settings()));
  const Located got = here.get(here.name());
  CHECK(got.path == "files/snapshots/" + kHash + "/a.jsonl");
  CHECK(got.pinned == here.name());
  CHECK(content(got.path) == kContent);
  CHECK(fs::read_symlink(got.path) == "../../blobs/" + kHash);
  REQUIRE(here.asked.size() == 1);
  CHECK(here.asked[0].method == "GET");
  CHECK(here.asked[0].path == "/data/a.jsonl?v=2");
  CHECK_FALSE(here.asked[0].headers.contains("authorization"));
  CHECK(locate(parse_web_file(here.name()).value(), here.settings())->path == got.path);
  here.get(here.name());
  CHECK(here.get(here.name("/data/b.jsonl"), /*offline=*/true).path == "files/snapshots/" + kHash + "/b.jsonl");
  CHECK(here.asked.size() == 1);  // the checksum says that it is the same file
}

TEST_CASE("a damaged file of the cache is downloaded again", "[hub]") {
  Here here;
  const Located got = here.get(here.name());
  const std::string blob = "files/blobs/" + kHash;
  fs::permissions(blob, fs::perms::owner_write, fs::perm_options::add);
  for (const std::string& damaged : {kContent.substr(1), std::string()}) {
    runner::core::write_file_atomic(blob, damaged).value();
    CHECK(here.error(here.name(), /*offline=*/true).find("is damaged") != std::string::npos);
    CHECK(content(here.get(here.name("/data/b.jsonl")).path) == kContent);
    CHECK(content(got.path) == kContent);
  }
}

TEST_CASE("a download from a server resumes", "[hub]") {
  Here here;
  SECTION("after a lost connection") {
    here.fault = [left = 2](const HttpRequest&, const HttpReply& usual) mutable -> std::optional<HttpReply> {
      if (left-- <= 0) return std::nullopt;
      HttpReply cut = usual;
      cut.cut_after = 100'000;
      return cut;
    };
    here.get(here.name());
    CHECK(here.ranges() == std::vector<std::string>{"", "bytes=100000-", "bytes=200000-"});
    CHECK(here.waits.size() == 2);
  }
  SECTION("after a kill") {
    here.folder.write(kBlob.string() + ".incomplete", kContent.substr(0, 250'000));
    here.get(here.name());
    CHECK(here.ranges() == std::vector<std::string>{"bytes=250000-"});
  }
  SECTION("after a kill before the file was in its place") {
    here.folder.write(kBlob.string() + ".incomplete", kContent);
    here.get(here.name());
    CHECK(here.ranges() == std::vector<std::string>{"bytes=300000-"});
  }
  SECTION("from the start, when what is there is of another file") {
    here.folder.write(kBlob.string() + ".incomplete", std::string(1000, 'v'));
    here.get(here.name());
    CHECK(here.ranges() == std::vector<std::string>{"bytes=1000-", ""});
  }
  SECTION("from the start, when more is there than the server has") {
    here.folder.write(kBlob.string() + ".incomplete", std::string(300'001, 'v'));
    here.get(here.name());
    CHECK(here.ranges() == std::vector<std::string>{"bytes=300001-", ""});
  }
  SECTION("from the start, when the server knows no ranges") {
    here.folder.write(kBlob.string() + ".incomplete", std::string(1000, 'v'));
    here.fault = [](const HttpRequest&, const HttpReply&) { return HttpReply{200, kContent}; };
    here.get(here.name());
    CHECK(here.ranges() == std::vector<std::string>{"bytes=1000-"});
  }
  CHECK(content(kBlob) == kContent);
  CHECK_FALSE(fs::exists(kBlob.string() + ".incomplete"));
}

TEST_CASE("a file with another checksum is refused, and never put in its place", "[hub]") {
  Here here;
  const std::string other(64, '0');
  CHECK(here.error(here.name("/data/a.jsonl", other)) ==
        "http://HOST/data/a.jsonl is not the file with that checksum: its SHA-256 is " + kHash + " instead of " +
            other +
            " | correct the checksum if it is misspelt; else the file was changed there, and its publisher knows why");
  CHECK(here.asked.size() == 1);
  CHECK_FALSE(fs::exists("files/blobs/" + other));
}

TEST_CASE("a server's refusal says what to do", "[hub]") {
  struct Case {
    int status;
    const char* header;
    const char* error;
    int exit;
  };
  static constexpr Case cases[] = {
      {404, "X: y", "HOST has no file http://HOST/data/a: it answers 404 | check the URL", 2},
      {403, "X: y",
       "HOST refuses http://HOST/data/a: it answers 403 | no login is sent to it: download the file by other means, "
       "and "
       "name its path",
       1},
      {503, "Retry-After: 3600", "HOST is overloaded: it answers 503: \"no\" | try again in 1 h 00 min", 1},
      {418, "X: y", "HOST answers 418 for http://HOST/data/a: \"no\" | check the URL and the proxy", 1},
      {302, "Location: /data/a", "HOST redirects more than 10 times | check the URL and the proxy", 1},
      {302, "Location: http://example.org/a",
       "HOST redirects to http, which anyone on the way could change | check the URL and the proxy", 1},
      {302, "Location: http://localhost:x@example.org/a",
       "HOST redirects to http, which anyone on the way could change | check the URL and the proxy", 1},
      {302, "Location: file:///etc/passwd",
       "HOST redirects to an address that is neither http nor https | check the URL and the proxy", 1},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.status << c.header) {
      Here here;
      here.fault = [&c](const HttpRequest&, const HttpReply&) { return HttpReply{c.status, "no", {}, {c.header}}; };
      CHECK(here.error(here.name("/data/a")) == c.error);
      CHECK(here.status == c.exit);
    }
  }
}

TEST_CASE("a redirect on the same machine is followed", "[hub]") {
  Here here;
  here.fault = [](const HttpRequest& request, const HttpReply&) -> std::optional<HttpReply> {
    if (request.path != "/latest") return std::nullopt;
    return HttpReply{302, "", {}, {"Location: data/a"}};
  };
  CHECK(content(here.get(here.name("/latest")).path) == kContent);
}

TEST_CASE("without a connection, or offline, the error says so", "[hub]") {
  Here here;
  CHECK(here.error(here.name("/data/a"), /*offline=*/true) ==
        "http://HOST/data/a is not in the cache files, and HF_HUB_OFFLINE is set | unset HF_HUB_OFFLINE, or copy the "
        "cache of a machine that has it");
  CHECK(here.asked.empty());
  here.fault = [](const HttpRequest&, const HttpReply&) { return HttpReply{200, "", HttpReply::Fate::kDrop}; };
  CHECK_THAT(here.error(here.name("/data/a")),
             Catch::StartsWith("http://HOST/data/a does not respond: ") &&
                 Catch::EndsWith(" | check the URL, the network and HTTPS_PROXY; a part that is there is kept"));
  CHECK(here.waits == std::vector<double>{1, 2, 4, 8});
}

TEST_CASE("a file that cannot fit is refused before more of it is written", "[hub]") {
  Here here;
  here.folder.write(kBlob.string() + ".incomplete", "www");
  here.fault = [](const HttpRequest&, const HttpReply&) {
    return HttpReply{206, "w", {}, {"Content-Range: bytes 3-8999999999999999999/9000000000000000000"}};
  };
  CHECK_THAT(here.error(here.name("/data/a")), Catch::StartsWith("http://HOST/data/a needs ") &&
                                                   Catch::Contains("and the disk of files has") &&
                                                   Catch::EndsWith("set ROUX_CACHE_DIR to a folder on a larger disk"));
  CHECK(here.status == runner::core::kExitResumable);
  CHECK(content(kBlob.string() + ".incomplete") == "www");
}

TEST_CASE("a file whose size no server says may take half of what the disk has left", "[hub]") {
  Here here;
  here.fault = [](const HttpRequest&, const HttpReply&) {
    return HttpReply{206, kContent, {}, {"Content-Range: bytes 0-299999/*"}};
  };
  const WebFile file = parse_web_file(here.name("/data/a")).value();
  const auto wanted = remote_file(file);
  const Cache cache = Cache::of_web_files(here.settings());
  const auto download_with = [&](std::int64_t left) {
    download(*wanted, cache, {.wait = [](double) {}, .free_bytes = [left](const std::string&) { return left; }});
  };
  try {
    download_with(599'998);
    FAIL("a file of any size was taken");
  } catch (const HubError& error) {
    CHECK_THAT(error.what(), Catch::StartsWith(file.url + " has more than ") &&
                                 Catch::Contains("half of what the disk of files had left") &&
                                 Catch::EndsWith("does not say its size"));
    CHECK_THAT(error.hint(), Catch::EndsWith("or set ROUX_CACHE_DIR to a folder on a larger disk"));
  }
  CHECK(here.asked.size() == 1);
  CHECK(fs::file_size(kBlob.string() + ".incomplete") == 0);
  download_with(600'000);
  CHECK(content(kBlob) == kContent);
}

TEST_CASE("a second process waits for the first's download from a server", "[hub]") {
  Here here;
  auto held = std::make_unique<FileLock>("files/.locks/" + kHash + ".lock", Wait(), nullptr);
  FetchWatch watch = here.watch();
  watch.wait = [&](double) {
    here.folder.write(kBlob.string(), kContent);
    held.reset();
  };
  fetch(parse_web_file(here.name()).value(), here.settings(), watch);
  CHECK(here.notes == std::vector<std::string>{"another process downloads a.jsonl; waiting for it"});
  CHECK(here.asked.empty());
}

TEST_CASE("the size of a file is told when the server says it", "[hub]") {
  Here here;
  FetchProgress last;
  FetchWatch watch = here.watch();
  watch.progress = [&last](const FetchProgress& progress) { last = progress; };
  here.folder.write(kBlob.string() + ".incomplete", kContent.substr(0, 1000));
  fetch(parse_web_file(here.name()).value(), here.settings(), watch);
  CHECK(last.file == "a.jsonl");
  CHECK(last.bytes == 300'000);
  CHECK(last.bytes_total == 300'000);
  CHECK(last.bytes_before == 1000);
}
