#include "trackers/server/http.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "tests/support/folder.h"
#include "tests/support/process/http_server.h"
#include "trackers/tracker.h"

namespace {

using namespace trackers;
using Remedy = TrackerError::Remedy;

TrackerError error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const TrackerError& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw std::logic_error("not reached");
}

}  // namespace

TEST_CASE("a request reaches the server whole, and its response is returned", "[trackers][http]") {
  const tests::Folder here;
  here.write("file.bin", std::string(100'000, 'f'));
  tests::HttpRequest got;
  tests::HttpServer server([&](const tests::HttpRequest& request) {
    got = request;
    return tests::HttpReply{201, "made"};
  });
  Http http({});
  CHECK(http.send({"GET", server.url() + "/a?b=c"}).body == "made");
  CHECK(got.method == "GET");
  CHECK(got.path == "/a?b=c");
  CHECK(http.send({"POST", server.url() + "/", {"X-Of: me"}, "sent"}).status == 201);
  CHECK(got.method == "POST");
  CHECK(got.body == "sent");
  CHECK(got.headers.at("x-of") == "me");
  http.send({"PUT", server.url() + "/", {}, "", "file.bin"});
  CHECK(got.method == "PUT");
  CHECK(got.body == std::string(100'000, 'f'));
}

TEST_CASE("no answer is a reason to try again, a wrong address is not", "[trackers][http]") {
  HttpOptions options;
  options.timeout_s = 0.2;
  Http http(options);
  CHECK(error_of([&] { http.send({"GET", "http://[::"}); }).remedy() == Remedy::kPause);
  CHECK(error_of([&] { http.send({"GET", "file:///etc/passwd"}); }).remedy() == Remedy::kPause);
  for (const auto fate : {tests::HttpReply::Fate::kHang, tests::HttpReply::Fate::kDrop}) {
    tests::HttpServer server([fate](const tests::HttpRequest&) { return tests::HttpReply{0, "", fate}; });
    CHECK(error_of([&] { http.send({"GET", server.url()}); }).remedy() == Remedy::kRetry);
  }
}

TEST_CASE("an answer says whether to retry, to pause, or to skip", "[trackers][http]") {
  struct Case {
    long status;
    Remedy remedy;
    const char* message;
  };
  static constexpr Case cases[] = {
      {301, Remedy::kPause, "it answers 301, a redirect"}, {400, Remedy::kReject, "it answers 400: \"no\""},
      {401, Remedy::kPause, "it answers 401: \"no\""},     {403, Remedy::kPause, "it answers 403: \"no\""},
      {404, Remedy::kReject, "it answers 404: \"no\""},    {408, Remedy::kRetry, "it answers 408: \"no\""},
      {429, Remedy::kRetry, "it answers 429: \"no\""},     {500, Remedy::kRetry, "it answers 500: \"no\""},
      {503, Remedy::kRetry, "it answers 503: \"no\""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.status) {
      const TrackerError error = error_of([&] { require_success({c.status, "no"}, "it"); });
      CHECK(error.remedy() == c.remedy);
      CHECK(std::string(error.what()) == c.message);
    }
  }
  CHECK(require_success({204, ""}, "it").ok());
}

TEST_CASE("a URL is written and shown as it should be", "[trackers][http]") {
  CHECK(url_encoded("a b/\xC3\xA9-._~") == "a%20b%2F%C3%A9-._~");
  CHECK(url_encoded("a/b c", "/") == "a/b%20c");
  CHECK(without_credentials("https://ada:secret@host:1/a@b") == "https://host:1/a@b");
  CHECK(without_credentials("https://host/a") == "https://host/a");
  CHECK(without_credentials("host") == "host");
}
