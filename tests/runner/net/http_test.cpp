#include "runner/net/http.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/net/pace.h"
#include "tests/support/process/http_server.h"

using runner::net::Http;
using runner::net::HttpAnswer;
using runner::net::NoResponse;
using runner::net::Pace;

TEST_CASE("what arrives has to keep a least rate, minute after minute", "[net]") {
  double now = 1000;
  Pace pace(100, [&now] { return now; });
  now += 59;
  CHECK_FALSE(pace.is_too_slow(0));
  now += 1;
  CHECK_FALSE(pace.is_too_slow(6000));
  now += 60;
  CHECK_FALSE(pace.is_too_slow(12'000));
  now += 30;  // what came earlier does not make up for what does not come
  CHECK_FALSE(pace.is_too_slow(12'060));
  now += 30;
  CHECK(pace.is_too_slow(12'120));
  CHECK(pace.is_too_slow(1'000'000));
  CHECK(pace.is_too_slow());
}

TEST_CASE("a server that sends a byte now and then is given up", "[net]") {
  tests::HttpServer server([](const tests::HttpRequest&) { return tests::HttpReply{200, std::string(300'000, 'w')}; });
  std::size_t bytes = 0;
  const auto receive = [&bytes](const HttpAnswer&, std::string_view piece) { bytes += piece.size(); };
  double now = 0;
  Http slow({.now = [&now] { return now += 61; }});  // a minute between two looks
  try {
    slow.send({.url = server.url() + "/a", .receive = receive});
    FAIL("a slow response was taken");
  } catch (const NoResponse& error) {
    CHECK(error.passes());  // it is asked again, and what is there is kept
    CHECK(error.what() == server.url() + "/a is too slow: " + error.reason());
    CHECK(error.reason() == "less than 1.0 KB a second arrived for a minute");
  }
  bytes = 0;
  Http usual({});
  usual.send({.url = server.url() + "/a", .receive = receive});
  CHECK(bytes == 300'000);
  // What is received whole has a limit of time.
  CHECK(slow.send({.url = server.url() + "/a"}).body.size() == 300'000);
}
